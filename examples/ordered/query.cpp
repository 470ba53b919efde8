// Queries a GDBM database in parallel, by one file in mode local.
//
// query (--threads N | --serial) OUTPUT DATABASE KEYS
// KEYS is a file with a key on each line. The output has a line for each: the key, a tab, and its
// value, or a dash. --serial asks libgdbm, which keeps one bucket at a time and so answers one
// query at a time. In parallel all strands read by one descriptor, and each moves its own pointer.
//
// Read are the databases of libgdbm with offsets of 64 bits and the byte order of the machine.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include <gdbm.h>

#include "program.hpp"

namespace {

using ciel::ordered::File;
using ciel::ordered::Mode;

constexpr std::int32_t MAGIC = 0x13579acf;
// A bucket begins with a list of free places, its bits and its count.
constexpr off_t BUCKET_HEADER_BYTES = 112;

struct Header {
    std::int32_t magic, block_bytes;
    std::int64_t directory;
    std::int32_t directory_bytes, directory_bits, bucket_bytes, bucket_elements;
};

struct Element {
    std::int32_t hash;
    char key_begin[4];
    std::int64_t place;
    std::int32_t key_bytes, value_bytes;
};

// The hash of libgdbm, of 31 bits.
std::uint32_t hash(std::string_view key) {
    std::uint32_t value = 0x238f13afu * static_cast<std::uint32_t>(key.size());
    for (std::size_t index = 0; index < key.size(); ++index) {
        auto byte = static_cast<std::uint32_t>(static_cast<unsigned char>(key[index]));
        value = (value + (byte << (index * 5 % 24))) & 0x7fffffff;
    }
    return (1103515243u * value + 12345) & 0x7fffffff;
}

class Database {
public:
    explicit Database(const std::string &path) : file_(path, Mode::local, O_RDONLY) {
        read(0, &header_, sizeof header_);
        if (header_.magic != MAGIC || header_.bucket_elements < 1 || header_.directory_bits < 1 ||
            header_.directory_bits > 30 || header_.directory_bytes < 8) {
            throw std::runtime_error(path + " is no GDBM database of this machine");
        }
        directory_.resize(static_cast<std::size_t>(header_.directory_bytes) / 8);
        read(header_.directory, directory_.data(), directory_.size() * 8);
    }

    std::optional<std::string> find(std::string_view key) const {
        std::uint32_t sought = hash(key);
        std::int64_t bucket = directory_.at(sought >> (31 - header_.directory_bits));
        auto count = static_cast<std::uint32_t>(header_.bucket_elements);
        for (std::uint32_t step = 0; step < count; ++step) {
            Element element;
            off_t place = (sought + step) % count * static_cast<off_t>(sizeof element);
            read(bucket + BUCKET_HEADER_BYTES + place, &element, sizeof element);
            if (element.hash == -1) break;
            if (static_cast<std::uint32_t>(element.hash) != sought) continue;
            std::string record = contents(element);
            auto length = static_cast<std::size_t>(element.key_bytes);
            if (record.compare(0, length, key) == 0) return record.substr(length);
        }
        return std::nullopt;
    }

private:
    std::string contents(const Element &element) const {
        auto bytes = static_cast<std::size_t>(element.key_bytes) +
                     static_cast<std::size_t>(element.value_bytes);
        std::string record(bytes, '\0');
        read(element.place, record.data(), bytes);
        return record;
    }
    // Moves this strand's pointer, and reads there.
    void read(off_t place, void *to, std::size_t bytes) const {
        file_.seek(place, SEEK_SET);
        for (std::size_t done = 0; done < bytes;) {
            std::size_t got = file_.read(static_cast<char *>(to) + done, bytes - done);
            if (got == 0) throw std::runtime_error("the database is cut");
            done += got;
        }
    }

    File file_;
    Header header_;
    std::vector<std::int64_t> directory_;
};

void answer(const program::Output &output, const std::string &key,
            const std::optional<std::string> &value) {
    output.write(key + "\t" + value.value_or("-") + "\n");
}

void ask_libgdbm(const program::Output &output, const std::string &path,
                 const std::vector<std::string> &keys) {
    using Opened = std::remove_pointer_t<GDBM_FILE>;
    std::unique_ptr<Opened, int (*)(GDBM_FILE)> database(
        gdbm_open(path.c_str(), 0, GDBM_READER, 0, nullptr), gdbm_close);
    if (!database) throw std::runtime_error(path + ": " + gdbm_strerror(gdbm_errno));
    for (const std::string &key : keys) {
        std::string copy = key;
        datum found = gdbm_fetch(database.get(), datum{copy.data(), static_cast<int>(copy.size())});
        std::unique_ptr<char, void (*)(void *)> owner(found.dptr, std::free);
        std::optional<std::string> value;
        if (found.dptr) value = std::string(found.dptr, static_cast<std::size_t>(found.dsize));
        answer(output, key, value);
    }
}

std::vector<std::string> lines_of(const std::string &path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

} // namespace

int main(int count, char **words) {
    return program::start(count, words, [](const auto &options, const auto &output) {
        if (options.arguments.size() != 2) throw std::invalid_argument("wants DATABASE and KEYS");
        std::vector<std::string> keys = lines_of(options.arguments[1]);
        if (options.is_serial) return ask_libgdbm(output, options.arguments[0], keys);
        Database database(options.arguments[0]);
        ciel::ordered::parallel_for<std::size_t>(0, keys.size(), 64, [&](std::size_t index) {
            answer(output, keys[index], database.find(keys[index]));
        });
    });
}
