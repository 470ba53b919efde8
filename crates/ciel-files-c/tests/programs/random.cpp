// Random fork-join programs, for several numbers of threads, against the same calls without forks.
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include <ciel_ordered.hpp>

#include "check.h"

namespace {

using ciel::ordered::File;
using ciel::ordered::Mode;

// A program: its seed decides each step. Without a file it is the serial elision.
struct Program {
    const File *log;
    const File *text;
    std::string *expected;

    void line(unsigned seed, char place) const {
        std::ostringstream words;
        words << place << seed << std::string(seed % 97, '.') << '\n';
        if (log == nullptr) {
            *expected += words.str();
        } else if (seed % 2 == 0) {
            log->write(words.str());
        } else {
            ciel::ordered::Stream(*log) << words.str();
        }
    }
    // A pointer in mode local is where it was at the fork, so each branch reads the same byte.
    void step(unsigned seed) const {
        if (text == nullptr) return;
        off_t before = text->seek(0, SEEK_CUR);
        text->seek(static_cast<off_t>(seed % 5), SEEK_CUR);
        CHECK(text->seek(0, SEEK_CUR) == before + static_cast<off_t>(seed % 5));
    }
    template <class F, class G> void join(F first, G second) const {
        if (log != nullptr) {
            off_t before = text->seek(0, SEEK_CUR);
            auto begins = [&, before](auto &closure) {
                CHECK(text->seek(0, SEEK_CUR) == before);
                closure();
            };
            ciel::ordered::join([&] { begins(first); }, [&] { begins(second); });
            CHECK(text->seek(0, SEEK_CUR) == before);
        } else {
            first();
            second();
        }
    }
    void scope(unsigned seed, int depth) const {
        auto spawned = [=, *this] { walk(seed * 5 + 1, depth - 1); };
        if (log == nullptr) {
            for (unsigned child = 0; child < seed % 4; ++child) {
                spawned();
                line(child, 's');
            }
            return;
        }
        ciel::ordered::scope([&](ciel::ordered::Scope &own) {
            for (unsigned child = 0; child < seed % 4; ++child) {
                own.spawn(spawned);
                line(child, 's');
            }
        });
    }
    void walk(unsigned seed, int depth) const {
        std::minstd_rand random(seed + 1);
        for (unsigned steps = 1 + random() % 3; steps > 0; --steps) {
            unsigned next = static_cast<unsigned>(random());
            switch (depth <= 0 ? 0 : random() % 4) {
            case 0: line(next % 1000, 'l'); break;
            case 1: step(next); break;
            case 2:
                join([&] { walk(next, depth - 1); }, [&] { walk(next + 1, depth - 1); });
                break;
            default: scope(next % 100, depth); break;
            }
        }
    }
};

std::string contents(const char *path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

void compare(unsigned seed, int threads) {
    std::string expected;
    Program{nullptr, nullptr, &expected}.walk(seed, 6);
    File log = File::create("log", Mode::serial_append);
    File text = File::create("text", Mode::local);
    ciel::ordered::run(threads, [&] { Program{&log, &text, nullptr}.walk(seed, 6); });
    log.close();
    if (contents("log") != expected) {
        std::fprintf(stderr, "seed %u with %d threads differs\n", seed, threads);
        std::exit(1);
    }
}

} // namespace

int main() {
    for (unsigned seed = 0; seed < 80; ++seed) {
        for (int threads : {1, 2, 4, 8}) compare(seed, threads);
    }
    return 0;
}
