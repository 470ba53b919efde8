// Refills the paragraphs of a text to lines of at most 75 columns, as fmt of coreutils does.
//
// fill (--threads N | --serial) OUTPUT INPUT
// Paragraphs are filled in parallel. The breaks are those of least cost, after Knuth and Plass; the
// costs are those of fmt, so the output is the same byte for byte in the C locale.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "program.hpp"

namespace {

constexpr long COLUMNS_MAX = 75;
constexpr long COLUMNS_GOAL = 70;
constexpr long TAB_COLUMNS = 8;
// A paragraph with more than this is filled in several parts.
constexpr std::size_t PART_WORDS_MAX = 998;
constexpr std::size_t PART_BYTES_MAX = 5000;

constexpr long square(long columns) { return columns * columns; }
constexpr long LINE = square(70);
constexpr long SENTENCE_BONUS = square(50);
constexpr long BREAK_AFTER_ABBREVIATION = square(600);
constexpr long BRACKET_BONUS = square(40);
constexpr long PUNCTUATION_BONUS = square(40);
constexpr long LATER_SPLIT_CREDIT = square(3);
constexpr long COST_MAX = std::numeric_limits<long>::max();

constexpr long unequal(long columns) { return square(columns * 10); }
constexpr long ragged(long columns) { return unequal(columns) / 2; }

bool is_space(char byte) { return std::isspace(static_cast<unsigned char>(byte)) != 0; }
bool is_one_of(const char *set, char byte) {
    return byte != 0 && std::strchr(set, byte) != nullptr;
}

struct Word {
    std::string_view text;
    long space = 0;
    bool opens = false, is_punctuated = false, has_period = false, ends_sentence = false;
    // Of the best way to fill from here on.
    long cost = 0, line_columns = 0;
    std::size_t next_line = 0;

    explicit Word(std::string_view word) : text(word) {
        opens = is_one_of("(['`\"", word.front());
        is_punctuated = std::ispunct(static_cast<unsigned char>(word.back())) != 0;
        std::size_t last = word.size() - 1;
        while (last > 0 && is_one_of(")]'\"", word[last])) --last;
        has_period = is_one_of(".?!", word[last]);
    }
    long columns() const { return static_cast<long>(text.size()); }
};

// Blanks from a place on: how many columns they move to the right, and where they end.
struct Blanks {
    std::size_t end;
    long column;
    bool has_tab = false;

    Blanks(std::string_view text, std::size_t at, long from) : end(at), column(from) {
        for (; end < text.size() && (text[end] == ' ' || text[end] == '\t'); ++end) {
            bool is_tab = text[end] == '\t';
            has_tab = has_tab || is_tab;
            column = is_tab ? (column / TAB_COLUMNS + 1) * TAB_COLUMNS : column + 1;
        }
    }
};

// Fills one paragraph.
class Filler {
public:
    // Blanks are written as tabs where they can be from the first tab of the text on.
    Filler(std::string_view text, long indent, bool uses_tabs)
        : text_(text), indent_(indent), uses_tabs_(uses_tabs) {}

    // The paragraph ends at `end`; blanks behind it are read before the last part is filled.
    std::string fill(std::size_t end) {
        std::size_t at = blanks(0, 0).end;
        long column = indent_;
        while (at < end) {
            std::size_t begin = at;
            at = word(begin);
            column += static_cast<long>(at - begin);
            words_.emplace_back(text_.substr(begin, at - begin));
            Blanks behind = blanks(at, column);
            bool is_last = behind.end >= text_.size();
            bool ends_line = is_last || text_[behind.end] == '\n';
            Word &read = words_.back();
            read.space = behind.column - column;
            read.ends_sentence = is_last || (read.has_period && (ends_line || read.space > 1));
            if (ends_line) read.space = read.ends_sentence ? 2 : 1;
            if (words_.size() > PART_WORDS_MAX) put_part(words_.size() - 1);
            at = behind.end;
            column = behind.column;
            if (ends_line && at < text_.size()) {
                Blanks before = blanks(at + 1, 0);
                at = before.end;
                column = before.column;
            }
        }
        words_.back().has_period = words_.back().ends_sentence = true;
        choose(words_.size());
        put(words_.size());
        return std::move(output_);
    }

private:
    Blanks blanks(std::size_t at, long column) {
        Blanks found(text_, at, column);
        uses_tabs_ = uses_tabs_ || found.has_tab;
        return found;
    }

    // Reads a word, and fills what precedes it when the part is full; a word that is too long is
    // put as it is.
    std::size_t word(std::size_t &begin) {
        std::size_t at = begin;
        do {
            if (part_bytes_ == PART_BYTES_MAX) make_room(begin, at);
            ++part_bytes_;
            ++at;
        } while (at < text_.size() && !is_space(text_[at]));
        return at;
    }

    void make_room(std::size_t &begin, std::size_t at) {
        if (!words_.empty()) return put_part(words_.size());
        output_.append(text_.substr(begin, at - begin));
        begin = at;
        part_bytes_ = 0;
    }

    // Puts as many lines of the first `count` words as are well ended.
    void put_part(std::size_t count) {
        choose(count);
        std::size_t split = count;
        long least = COST_MAX;
        for (std::size_t line = words_[0].next_line; line != count; line = words_[line].next_line) {
            long cost = words_[line].cost - cost_at(words_[line].next_line, count);
            if (cost < least) {
                split = line;
                least = cost;
            }
            if (least <= COST_MAX - LATER_SPLIT_CREDIT) least += LATER_SPLIT_CREDIT;
        }
        put(split);
        for (std::size_t index = 0; index < split; ++index) {
            part_bytes_ -= words_[index].text.size();
        }
        words_.erase(words_.begin(), words_.begin() + static_cast<long>(split));
    }

    long cost_at(std::size_t line, std::size_t count) const {
        return line == count ? 0 : words_[line].cost;
    }

    // Chooses the breaks of the first `count` words, from the last one on.
    void choose(std::size_t count) {
        for (std::size_t start = count; start-- > 0;) {
            Word &first = words_[start];
            long best = COST_MAX;
            long columns = indent_ + first.columns();
            std::size_t next = start;
            do {
                ++next;
                long cost = line_cost(next, columns, count) + cost_at(next, count);
                if (start == 0 && last_columns_ > 0) cost += ragged(columns - last_columns_);
                if (cost < best) {
                    best = cost;
                    first.next_line = next;
                    first.line_columns = columns;
                }
                if (next == count) break;
                columns += words_[next - 1].space + words_[next].columns();
            } while (columns < COLUMNS_MAX);
            first.cost = best + break_cost(start);
        }
    }

    long line_cost(std::size_t next, long columns, std::size_t count) const {
        if (next == count) return 0;
        long cost = unequal(COLUMNS_GOAL - columns);
        if (words_[next].next_line != count) cost += ragged(columns - words_[next].line_columns);
        return cost;
    }

    // Of a break before a word.
    long break_cost(std::size_t at) const {
        const Word &first = words_[at];
        long cost = LINE;
        if (at > 0) {
            const Word &before = words_[at - 1];
            if (before.has_period) {
                cost += before.ends_sentence ? -SENTENCE_BONUS : BREAK_AFTER_ABBREVIATION;
            } else if (before.is_punctuated) {
                cost -= PUNCTUATION_BONUS;
            } else if (at > 1 && words_[at - 2].ends_sentence) {
                cost += square(200) / (before.columns() + 2);
            }
        }
        if (first.opens) return cost - BRACKET_BONUS;
        return first.ends_sentence ? cost + square(150) / (first.columns() + 2) : cost;
    }

    void put(std::size_t end) {
        for (std::size_t line = 0; line != end;) {
            std::size_t next = words_[line].next_line;
            column_ = 0;
            put_space(indent_);
            for (; line != next; ++line) {
                output_.append(words_[line].text);
                column_ += words_[line].columns();
                if (line + 1 != next) put_space(words_[line].space);
            }
            last_columns_ = column_;
            output_ += '\n';
        }
    }

    void put_space(long columns) {
        long target = column_ + columns;
        long tabbed = target / TAB_COLUMNS * TAB_COLUMNS;
        if (uses_tabs_ && column_ + 1 < tabbed) {
            for (; column_ < tabbed; column_ = (column_ / TAB_COLUMNS + 1) * TAB_COLUMNS) {
                output_ += '\t';
            }
        }
        output_.append(static_cast<std::size_t>(target - column_), ' ');
        column_ = target;
    }

    std::string_view text_;
    long indent_;
    bool uses_tabs_;
    std::string output_;
    std::vector<Word> words_;
    std::size_t part_bytes_ = 0;
    long column_ = 0, last_columns_ = 0;
};

// A paragraph, or blank lines before the next one.
struct Piece {
    std::size_t begin, end;
    // Where the blanks end that follow, the last ones that are read before it is filled.
    std::size_t behind;
    long indent;
    bool uses_tabs, is_blank;
};

// Cuts a text: a paragraph is lines of equal indentation.
std::vector<Piece> pieces_of(std::string_view text) {
    std::vector<Piece> pieces;
    bool uses_tabs = false, is_whole = false;
    for (std::size_t at = 0; at < text.size();) {
        Blanks indent(text, at, 0);
        bool is_blank = indent.end == text.size() || text[indent.end] == '\n';
        bool continues = is_whole && !is_blank && pieces.back().indent == indent.column;
        if (is_whole) pieces.back().behind = indent.end;
        std::size_t end = std::min(text.find('\n', indent.end), text.size() - 1) + 1;
        if (continues) {
            pieces.back().end = pieces.back().behind = end;
        } else {
            pieces.push_back({at, end, end, indent.column, uses_tabs, is_blank});
        }
        is_whole = !is_blank;
        std::string_view line = text.substr(at, end - at);
        uses_tabs = uses_tabs || line.find('\t') != std::string_view::npos;
        at = end;
    }
    return pieces;
}

std::string contents(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

struct Text {
    const program::Options &options;
    const program::Output &output;
    std::string_view text;
    std::vector<Piece> pieces;

    void fill(std::size_t begin, std::size_t end) const {
        if (end - begin > 16) {
            std::size_t middle = begin + (end - begin) / 2;
            program::both(
                options, [&] { fill(begin, middle); }, [&] { fill(middle, end); });
            return;
        }
        for (; begin < end; ++begin) {
            const Piece &piece = pieces[begin];
            if (piece.is_blank) {
                output.write("\n");
                continue;
            }
            Filler filler(text.substr(piece.begin, piece.behind - piece.begin), piece.indent,
                          piece.uses_tabs);
            output.write(filler.fill(piece.end - piece.begin));
        }
    }
};

} // namespace

int main(int count, char **words) {
    return program::start(count, words, [](const auto &options, const auto &output) {
        if (options.arguments.size() != 1) throw std::invalid_argument("the input is missing");
        std::string text = contents(options.arguments[0]);
        Text whole{options, output, text, pieces_of(text)};
        whole.fill(0, whole.pieces.size());
    });
}
