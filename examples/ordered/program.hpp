// What the programs of this folder share: their options, and a serial form of their output.
//
// PROGRAM (--threads N | --serial) OUTPUT ARGUMENT...
// --serial writes with the C library's buffer and calls what is joined one after the other.
#ifndef PROGRAM_HPP
#define PROGRAM_HPP

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ciel_ordered.hpp>

namespace program {

// The file that a program writes: in mode serial-append, or as a serial program has it.
class Output {
public:
    Output(const std::string &path, bool is_serial) {
        if (!is_serial) {
            file_.emplace(
                ciel::ordered::File::create(path, ciel::ordered::Mode::serial_append));
            return;
        }
        serial_ = std::fopen(path.c_str(), "wb");
        if (serial_ == nullptr) throw std::runtime_error("cannot create " + path);
    }
    void write(std::string_view bytes) const {
        if (file_) {
            file_->write(bytes);
        } else if (std::fwrite(bytes.data(), 1, bytes.size(), serial_) != bytes.size()) {
            throw std::runtime_error("cannot write the output");
        }
    }
    void close() {
        if (file_) {
            file_->close();
        } else if (std::fclose(serial_) != 0) {
            throw std::runtime_error("cannot close the output");
        }
    }

private:
    std::optional<ciel::ordered::File> file_;
    std::FILE *serial_ = nullptr;
};

struct Options {
    bool is_serial = false;
    int threads = 1;
    std::string output;
    std::vector<std::string> arguments;
};

inline Options options(int count, char **words) {
    Options result;
    std::vector<std::string> rest(words + 1, words + count);
    std::size_t at = 0;
    if (!rest.empty() && rest[0] == "--serial") {
        result.is_serial = true;
        at = 1;
    } else if (rest.size() > 1 && rest[0] == "--threads") {
        result.threads = std::stoi(rest[1]);
        at = 2;
    }
    if (at == 0 || rest.size() <= at || result.threads < 1) {
        throw std::invalid_argument("usage: (--threads N | --serial) OUTPUT ARGUMENT...");
    }
    result.output = rest[at];
    result.arguments.assign(rest.begin() + static_cast<long>(at) + 1, rest.end());
    return result;
}

// The argument at a place, or a default.
inline long number(const Options &options, std::size_t place, long otherwise) {
    return place < options.arguments.size() ? std::stol(options.arguments[place]) : otherwise;
}

// Calls both closures: one after the other in a serial program, else as a join.
template <class F, class G> void both(const Options &options, F &&first, G &&second) {
    if (options.is_serial) {
        first();
        second();
    } else {
        ciel::ordered::join(first, second);
    }
}

// Runs a program's body(options, output) with its threads; returns the exit code.
template <class F> int start(int count, char **words, F &&body) {
    try {
        Options chosen = options(count, words);
        Output output(chosen.output, chosen.is_serial);
        if (chosen.is_serial) {
            body(chosen, output);
        } else {
            ciel::ordered::run(chosen.threads, [&] { body(chosen, output); });
        }
        output.close();
        return 0;
    } catch (const std::exception &error) {
        std::cerr << words[0] << ": " << error.what() << "\n";
        return 1;
    }
}

} // namespace program

#endif
