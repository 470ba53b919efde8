// Strands are as many as the header says, counted where it makes them.
#include <atomic>
#include <string>

#include <ciel_ordered.h>

static std::atomic<int> strands{0};
#define ciel_ordered_detached(place) (++strands, ciel_ordered_detached(place))

#include <ciel_ordered.hpp>

#include "check.h"

namespace {

using ciel::ordered::File;
using ciel::ordered::Mode;

thread_local char here;

// Second closures that ran on another thread than that of their join, or before the first ended.
std::atomic<int> elsewhere_or_early{0};

void tree(const File &log, int depth) {
    if (depth == 0) {
        log.write("x");
        return;
    }
    const char *thread = &here;
    std::atomic<bool> first_ended{false};
    ciel::ordered::join(
        [&] {
            tree(log, depth - 1);
            first_ended = true;
        },
        [&] {
            if (thread != &here || !first_ended) ++elsewhere_or_early;
            tree(log, depth - 1);
        });
}

void joins(int threads) {
    strands = elsewhere_or_early = 0;
    File log = File::create("log", Mode::serial_append);
    ciel::ordered::run(threads, [&] { tree(log, 8); });
    log.close();
    CHECK(holds("log", std::string(256, 'x').c_str()));
    CHECK(strands <= 1 + elsewhere_or_early);
    CHECK(threads > 1 || strands == 0);
}

void scopes(int threads) {
    strands = 0;
    File log = File::create("log", Mode::serial_append);
    ciel::ordered::run(threads, [&] {
        ciel::ordered::scope([&](ciel::ordered::Scope &own) {
            for (int number = 0; number < 100; ++number) own.spawn([&] { log.write("x"); });
        });
    });
    log.close();
    CHECK(holds("log", std::string(100, 'x').c_str()));
    CHECK(strands == (threads > 1 ? 200 : 0));
}

} // namespace

int main() {
    for (int threads : {1, 2, 4}) {
        for (int round = 0; round < 3; ++round) joins(threads);
        scopes(threads);
    }
    return 0;
}
