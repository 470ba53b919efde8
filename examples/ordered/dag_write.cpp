// dag-write of the thesis: a deep tree of spawns, with output at the leaves.
//
// dag_write (--threads N | --serial) OUTPUT [LEAVES [GRAIN]]
// Each leaf writes one line of 42 bytes. GRAIN leaves follow one another without a join.
#include "program.hpp"

namespace {

void leaf(const program::Output &output, long index) {
    char line[64];
    int length = std::snprintf(line, sizeof line, "leaf %011ld of a tree of spawns here\n", index);
    output.write(std::string_view(line, static_cast<std::size_t>(length)));
}

struct Tree {
    const program::Options &options;
    const program::Output &output;
    long grain;

    void walk(long begin, long end) const {
        if (end - begin <= grain) {
            for (long index = begin; index < end; ++index) leaf(output, index);
            return;
        }
        long middle = begin + (end - begin) / 2;
        program::both(
            options, [&] { walk(begin, middle); }, [&] { walk(middle, end); });
    }
};

} // namespace

int main(int count, char **words) {
    return program::start(count, words, [](const auto &options, const auto &output) {
        Tree tree{options, output, program::number(options, 1, 64)};
        tree.walk(0, program::number(options, 0, 262144));
    });
}
