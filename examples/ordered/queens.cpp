// Places queens on a board, with a log of all solutions in lexicographic order.
//
// queens (--threads N | --serial) OUTPUT [QUEENS]
// A line of the log is a solution: the column of the queen of each row.
#include "program.hpp"

#include <algorithm>

namespace {

struct Board {
    const program::Options &options;
    const program::Output &output;
    int size;
    // So many last rows are not divided: a task of OpenMP costs more than few queens to place.
    int serial_rows;

    bool is_free(const std::string &rows, int column) const {
        int row = static_cast<int>(rows.size());
        for (int other = 0; other < row; ++other) {
            int there = rows[static_cast<std::size_t>(other)] - 'a';
            int distance = row - other;
            if (there == column || there - column == distance || column - there == distance) {
                return false;
            }
        }
        return true;
    }

    void place(const std::string &rows, int begin, int end) const {
        bool is_divided = static_cast<int>(rows.size()) < size - serial_rows;
        if (is_divided && end - begin > 1) {
            int middle = begin + (end - begin) / 2;
            program::both(
                options, [&] { place(rows, begin, middle); },
                [&] { place(rows, middle, end); });
            return;
        }
        for (int column = begin; column < end; ++column) {
            if (is_free(rows, column)) search(rows + static_cast<char>('a' + column));
        }
    }

    void search(const std::string &rows) const {
        if (static_cast<int>(rows.size()) == size) {
            output.write(rows + "\n");
        } else {
            place(rows, 0, size);
        }
    }
};

} // namespace

int main(int count, char **words) {
    return program::start(count, words, [](const auto &options, const auto &output) {
        int size = static_cast<int>(program::number(options, 0, 8));
        if (size < 1 || size > 26) throw std::invalid_argument("a board has 1 to 26 rows");
        Board{options, output, size, std::max(6, size - 3)}.search("");
    });
}
