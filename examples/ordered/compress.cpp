// Compresses a file in parallel; the output is what gzip reads.
//
// compress (--threads N | --serial) OUTPUT INPUT [LEVEL]
// Each block of 128 KiB is deflated with the 32 KiB before it as dictionary and ends at a byte, so
// the blocks follow one another as one member of the format (RFC 1952). Level 1 to 9, 6 by default.
#include <algorithm>
#include <array>
#include <fstream>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include <zlib.h>

#include "program.hpp"

namespace {

constexpr long BLOCK_BYTES = 128 << 10;
constexpr long DICTIONARY_BYTES = 32 << 10;

// A checksum and how many bytes it is of.
struct Checked {
    unsigned long sum = 0;
    long bytes = 0;
};

struct Input {
    int descriptor;
    long bytes;

    explicit Input(const std::string &path) : descriptor(open(path.c_str(), O_RDONLY)), bytes(0) {
        struct stat found;
        if (descriptor < 0 || fstat(descriptor, &found) != 0) {
            throw std::runtime_error("cannot read " + path);
        }
        bytes = found.st_size;
    }
    Input(const Input &) = delete;
    Input &operator=(const Input &) = delete;
    ~Input() { ::close(descriptor); }

    std::string read(long begin, long end) const {
        std::string text(static_cast<std::size_t>(end - begin), '\0');
        for (long at = begin; at < end;) {
            long got = pread(descriptor, text.data() + (at - begin),
                             static_cast<std::size_t>(end - at), at);
            if (got <= 0) throw std::runtime_error("cannot read the input, or it was cut");
            at += got;
        }
        return text;
    }
};

struct Compressor {
    const program::Options &options;
    const program::Output &output;
    const Input &input;
    int level;

    Checked block(long index) const {
        long begin = index * BLOCK_BYTES;
        long end = std::min(begin + BLOCK_BYTES, input.bytes);
        long before = std::min(begin, DICTIONARY_BYTES);
        std::string text = input.read(begin - before, end);
        auto *bytes = reinterpret_cast<Bytef *>(text.data());
        auto length = static_cast<uInt>(end - begin);
        z_stream stream{};
        if (deflateInit2(&stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
            throw std::runtime_error("zlib has no memory for a stream, or no such level");
        }
        if (before > 0) deflateSetDictionary(&stream, bytes, static_cast<uInt>(before));
        // A flush adds a few bytes to the bound.
        std::string packed(deflateBound(&stream, length) + 16, '\0');
        stream.next_in = bytes + before;
        stream.avail_in = length;
        stream.next_out = reinterpret_cast<Bytef *>(packed.data());
        stream.avail_out = static_cast<uInt>(packed.size());
        bool is_last = end == input.bytes;
        int result = deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
        packed.resize(packed.size() - stream.avail_out);
        deflateEnd(&stream);
        if (result != (is_last ? Z_STREAM_END : Z_OK)) {
            throw std::runtime_error("zlib cannot deflate a block");
        }
        output.write(packed);
        return Checked{crc32(0, bytes + before, length), end - begin};
    }

    Checked blocks(long begin, long end) const {
        if (end - begin == 1) return block(begin);
        long middle = begin + (end - begin) / 2;
        Checked left, right;
        program::both(
            options, [&] { left = blocks(begin, middle); },
            [&] { right = blocks(middle, end); });
        return Checked{crc32_combine(left.sum, right.sum, right.bytes), left.bytes + right.bytes};
    }
};

std::string little_endian(unsigned long number) {
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) {
        bytes += static_cast<char>(number >> shift & 255);
    }
    return bytes;
}

} // namespace

int main(int count, char **words) {
    return program::start(count, words, [](const auto &options, const auto &output) {
        if (options.arguments.empty()) throw std::invalid_argument("the input is missing");
        Input input(options.arguments[0]);
        int level = static_cast<int>(program::number(options, 1, 6));
        output.write(std::string_view("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10));
        Compressor compressor{options, output, input, level};
        long blocks = std::max(1L, (input.bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
        Checked all = compressor.blocks(0, blocks);
        output.write(little_endian(all.sum) + little_endian(static_cast<unsigned long>(all.bytes)));
    });
}
