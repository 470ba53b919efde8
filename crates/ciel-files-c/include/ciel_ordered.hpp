// Fork-join programs in C++17 whose files are those of their serial elision.
//
// Work stealing is OpenMP's: compile with -fopenmp. Without it everything runs in its serial order.
// Outside of run() everything does, too.
//
// Bound: OpenMP does not tell what was stolen. A join makes a strand for its second closure unless
// the thread of the join runs it after the first one; so strands are at most 1 + second closures
// that ran elsewhere or early. A scope makes two for each spawn. What such a strand writes is kept
// (above a buffer: on disk, beside the file) until its join.
//
// Exceptions: files hold what the serial elision would have written before the exception, which
// leaves run, join, scope and parallel_for. Closures that come later in serial order may have run;
// what they wrote is dropped.
//
// Errors of files are thrown as ciel::ordered::Error, with the errno of ciel_ordered.h.
// Read next: ciel_ordered.h.
#ifndef CIEL_ORDERED_HPP
#define CIEL_ORDERED_HPP

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "ciel_ordered.h"

namespace ciel::ordered {

// Why a call failed: code() is its errno, what() the message of the library.
class Error : public std::system_error {
public:
    explicit Error(int number)
        : std::system_error(number, std::generic_category(), ciel_ordered_error()) {}
};

namespace detail {

template <class T> T checked(T result) {
    if (result == static_cast<T>(-1)) throw Error(errno);
    return result;
}

} // namespace detail

enum class Mode {
    global = CIEL_ORDERED_GLOBAL,
    local = CIEL_ORDERED_LOCAL,
    serial_append = CIEL_ORDERED_SERIAL_APPEND,
};

// An open file. It is moved, not copied; dup() gives another handle of the same open file.
class File {
public:
    // Flags and permissions are those of ciel_ordered_open.
    File(const std::string &path, Mode mode, int flags, mode_t permissions = 0666)
        : descriptor_(detail::checked(
              ciel_ordered_open(path.c_str(), static_cast<int>(mode), flags, permissions))) {}

    // A new file, or one whose contents are removed.
    static File create(const std::string &path, Mode mode) {
        int access = mode == Mode::serial_append ? O_WRONLY : O_RDWR;
        return File(path, mode, access | O_CREAT | O_TRUNC);
    }

    File(File &&other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File &operator=(File &&other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    // Closes without a report; close() reports.
    ~File() {
        if (descriptor_ >= 0) ciel_ordered_close(descriptor_);
    }

    File dup() const { return File(detail::checked(ciel_ordered_dup(descriptor_))); }
    int descriptor() const { return descriptor_; }

    // Writes all bytes.
    void write(std::string_view bytes) const {
        detail::checked(ciel_ordered_write(descriptor_, bytes.data(), bytes.size()));
    }
    // Reads at most length bytes; 0 at the end.
    std::size_t read(void *buffer, std::size_t length) const {
        return static_cast<std::size_t>(
            detail::checked(ciel_ordered_read(descriptor_, buffer, length)));
    }
    off_t seek(off_t offset, int whence) const {
        return detail::checked(ciel_ordered_lseek(descriptor_, offset, whence));
    }
    // The file is complete. It stays open if that is too early.
    void close() {
        if (ciel_ordered_close(descriptor_) != 0) {
            int number = errno;
            if (number != EBUSY && number != EPERM) descriptor_ = -1;
            throw Error(number);
        }
        descriptor_ = -1;
    }

private:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    int descriptor_;
};

namespace detail {

class Buffer : public std::streambuf {
public:
    explicit Buffer(int descriptor) : descriptor_(descriptor) {
        setp(bytes_.data(), bytes_.data() + bytes_.size());
    }
    ~Buffer() override { sync(); }

protected:
    int overflow(int byte) override {
        if (sync() != 0) return traits_type::eof();
        if (byte != traits_type::eof()) sputc(static_cast<char>(byte));
        return traits_type::not_eof(byte);
    }
    int sync() override {
        auto length = static_cast<std::size_t>(pptr() - pbase());
        bool fails = length > 0 && ciel_ordered_write(descriptor_, pbase(), length) < 0;
        setp(bytes_.data(), bytes_.data() + bytes_.size());
        return fails ? -1 : 0;
    }

private:
    int descriptor_;
    std::array<char, 512> bytes_{};
};

} // namespace detail

// An output stream on a file. It belongs to one strand, which destroys or flushes it before it
// forks, because it has a buffer. A failed write sets badbit.
class Stream : private detail::Buffer, public std::ostream {
public:
    explicit Stream(const File &file) : Buffer(file.descriptor()), std::ostream(nullptr) {
        rdbuf(this);
    }
    using std::ostream::operator<<;
};

namespace detail {

// The strand of this thread; its address tells threads apart.
inline thread_local const void *current = nullptr;

inline bool is_parallel() {
#ifdef _OPENMP
    return omp_in_parallel() != 0;
#else
    return false;
#endif
}

class Place {
public:
    Place() { checked(ciel_ordered_here(&place_)); }
    ~Place() { ciel_ordered_release(&place_); }
    Place(const Place &) = delete;
    Place &operator=(const Place &) = delete;
    void rewind() const { ciel_ordered_rewind(&place_); }
    ciel_ordered_strand *detached() const {
        ciel_ordered_strand *strand = ciel_ordered_detached(&place_);
        if (strand == nullptr) throw Error(errno);
        return strand;
    }

private:
    ciel_ordered_place place_;
};

// A strand of its own for a closure, and how the closure ended.
struct Piece {
    ciel_ordered_strand *strand = nullptr;
    std::exception_ptr failure;
    const void *before = nullptr;

    void enter() {
        checked(ciel_ordered_enter(strand));
        before = std::exchange(current, strand);
    }
    void leave() {
        current = before;
        ciel_ordered_leave(strand);
    }
    template <class F> void run(F &closure) {
        enter();
        try {
            closure();
        } catch (...) {
            failure = std::current_exception();
        }
        leave();
    }
    void append() {
        if (strand != nullptr) checked(ciel_ordered_append(std::exchange(strand, nullptr)));
    }
    ~Piece() {
        if (strand != nullptr) ciel_ordered_join(strand);
    }
};

// What the two closures of a join share.
template <class G> struct Frame {
    G &second;
    Place place;
    const void *thread = &current;
    const void *strand = current;
    bool first_ended = false;
    std::atomic<bool> first_failed{false};
    Piece piece;

    explicit Frame(G &closure) : second(closure) {}

    // Whether this thread waits in the join, as the strand of the join.
    bool is_in_turn() const {
        return thread == &current && first_ended && strand == current;
    }
    void run_second() noexcept {
        if (first_failed) return;
        try {
            if (is_in_turn()) {
                place.rewind();
                second();
            } else {
                piece.strand = place.detached();
                piece.run(second);
            }
        } catch (...) {
            piece.failure = std::current_exception();
        }
    }
};

template <class F, class G> void join_in_parallel(F &first, G &second) {
    Frame<G> frame(second);
    std::exception_ptr failure;
#ifdef _OPENMP
#pragma omp taskgroup
#endif
    {
#ifdef _OPENMP
#pragma omp task default(none) shared(frame)
#endif
        frame.run_second();
        try {
            first();
        } catch (...) {
            frame.first_failed = true;
            failure = std::current_exception();
        }
        frame.first_ended = true;
    }
    if (failure) std::rethrow_exception(failure);
    frame.piece.append();
    frame.place.rewind();
    if (frame.piece.failure) std::rethrow_exception(frame.piece.failure);
}

} // namespace detail

// Calls a closure with so many threads; join, scope and parallel_for within it use them.
template <class F> void run(int threads, F &&closure) {
    if (threads <= 1 || detail::is_parallel()) {
        closure();
        return;
    }
    std::exception_ptr failure;
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) default(shared)
#endif
    {
#ifdef _OPENMP
#pragma omp master
#endif
        try {
            closure();
        } catch (...) {
            failure = std::current_exception();
        }
    }
    if (failure) std::rethrow_exception(failure);
}

// Calls two closures, perhaps at the same time: all that the first writes precedes what the second
// writes. Pointers in mode local begin in both where they are, and are there again afterwards.
template <class F, class G> void join(F &&first, G &&second) {
    if (detail::is_parallel()) {
        detail::join_in_parallel(first, second);
        return;
    }
    detail::Place place;
    first();
    place.rewind();
    second();
    place.rewind();
}

// Calls closure(index) for each index of begin..end, in pieces of at most grain indexes.
template <class I, class F> void parallel_for(I begin, I end, I grain, const F &closure) {
    if (end - begin > grain) {
        I middle = begin + (end - begin) / 2;
        join([&] { parallel_for(begin, middle, grain, closure); },
             [&] { parallel_for(middle, end, grain, closure); });
        return;
    }
    for (I index = begin; index < end; ++index) closure(index);
}

// Closures that have ended when the scope ends. Only the strand of the scope may spawn.
class Scope {
public:
    // Calls a closure, perhaps later: what it writes comes here, before what the caller writes from
    // now on.
    template <class F> void spawn(F &&closure) {
        detail::Place place;
        if (!detail::is_parallel()) {
            closure();
            place.rewind();
            return;
        }
        auto *own = new std::decay_t<F>(std::forward<F>(closure));
        std::unique_ptr<std::decay_t<F>> owner(own);
        leave();
        detail::Piece *piece = add(place);
        add(place)->enter();
        is_inside_ = true;
        owner.release();
#ifdef _OPENMP
#pragma omp task default(none) firstprivate(own, piece)
#endif
        call(own, piece);
    }

private:
    template <class F> friend void scope(F &&body);
    Scope() = default;

    template <class F> static void call(F *closure, detail::Piece *piece) noexcept {
        std::unique_ptr<F> owner(closure);
        try {
            piece->run(*closure);
        } catch (...) {
            piece->failure = std::current_exception();
        }
    }
    detail::Piece *add(const detail::Place &place) {
        pieces_.emplace_back();
        pieces_.back().strand = place.detached();
        return &pieces_.back();
    }
    void leave() {
        if (std::exchange(is_inside_, false)) pieces_.back().leave();
    }
    template <class F> void run(F &body) {
        std::exception_ptr failure;
#ifdef _OPENMP
#pragma omp taskgroup
#endif
        {
            try {
                body(*this);
            } catch (...) {
                failure = std::current_exception();
            }
            leave();
        }
        for (detail::Piece &piece : pieces_) {
            piece.append();
            if (piece.failure) std::rethrow_exception(piece.failure);
        }
        if (failure) std::rethrow_exception(failure);
    }

    std::deque<detail::Piece> pieces_;
    bool is_inside_ = false;
};

// Calls body(Scope &) and waits for what it has spawned.
template <class F> void scope(F &&body) {
    Scope own;
    own.run(body);
}

} // namespace ciel::ordered

#endif
