// An exception in each place: the file holds what precedes it, and it propagates.
#include <fstream>
#include <stdexcept>

#include <ciel_ordered.hpp>

#include "check.h"

namespace {

using ciel::ordered::File;
using ciel::ordered::Mode;

// Runs a body that throws, with several threads; the log must hold exactly this text.
template <class F> void leaves(const char *text, const F &body) {
    for (int threads : {1, 2, 4, 8}) {
        for (int round = 0; round < 20; ++round) {
            File log = File::create("log", Mode::serial_append);
            bool is_thrown = false;
            try {
                ciel::ordered::run(threads, [&] { body(log); });
            } catch (const std::runtime_error &error) {
                is_thrown = std::string(error.what()) == "first";
            }
            CHECK(is_thrown);
            log.close();
            CHECK(holds("log", text));
        }
    }
}

[[noreturn]] void fail() { throw std::runtime_error("first"); }
[[noreturn]] void fail_later() { throw std::runtime_error("later"); }

void joins() {
    leaves("a", [](const File &log) {
        ciel::ordered::join([&] { log.write("a"); fail(); }, [&] { log.write("b"); fail_later(); });
        log.write("c");
    });
    leaves("ab", [](const File &log) {
        ciel::ordered::join([&] { log.write("a"); }, [&] { log.write("b"); fail(); });
        log.write("c");
    });
    leaves("0\n1\n2\n", [](const File &log) {
        ciel::ordered::parallel_for(0, 64, 1, [&](int index) {
            if (index >= 3) index == 3 ? fail() : fail_later();
            ciel::ordered::Stream(log) << index << '\n';
        });
    });
}

void scopes() {
    leaves("ab", [](const File &log) {
        ciel::ordered::scope([&](ciel::ordered::Scope &own) {
            own.spawn([&] { log.write("a"); });
            log.write("b");
            own.spawn([&] { fail(); });
            log.write("c");
            own.spawn([&] { log.write("d"); fail_later(); });
        });
    });
    leaves("abc", [](const File &log) {
        ciel::ordered::scope([&](ciel::ordered::Scope &own) {
            own.spawn([&] { log.write("a"); });
            log.write("b");
            own.spawn([&] { log.write("c"); });
            fail();
        });
    });
}

void failed_calls() {
    bool is_thrown = false;
    try {
        File("none", Mode::local, O_RDWR);
    } catch (const ciel::ordered::Error &error) {
        is_thrown = error.code().value() == ENOENT && strstr(error.what(), "none") != nullptr;
    }
    CHECK(is_thrown);
    File log = File::create("log", Mode::serial_append);
    File other = log.dup();
    log.close();
    other.write("x");
    other.close();
    CHECK(holds("log", "x"));
}

} // namespace

int main() {
    joins();
    scopes();
    failed_calls();
    return 0;
}
