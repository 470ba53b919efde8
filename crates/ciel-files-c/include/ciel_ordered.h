/*
 * Files that a parallel program writes as its serial elision would.
 *
 * The serial elision of a fork-join program is the same program with every fork replaced by a plain
 * call. The calls are those of POSIX, with a mode in open; descriptors are this library's own, and
 * mean nothing to the kernel.
 *
 * Errors: a call that fails returns -1, or a null pointer, and sets errno as described there;
 * ciel_ordered_error() gives the message. Every call may set EINVAL for an argument that is out of
 * range, EBADF for a descriptor that is not open, and ENOTRECOVERABLE for a bug of the library. The
 * library ends no process and throws nothing.
 *
 * Strands: the thread that opens a file is the first strand that may use it. Every other thread
 * has to enter a strand that descends from it; otherwise its calls on a file in mode local or
 * serial-append fail with EPERM. Handles of strands that were joined, appended or reduced must not
 * be used again.
 */
#ifndef CIEL_ORDERED_H
#define CIEL_ORDERED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of the pointer of a file when a strand forks. */
enum ciel_ordered_mode {
    /* There is one pointer, which all strands share. Each call is atomic. */
    CIEL_ORDERED_GLOBAL = 0,
    /* Each strand has its own. A child's begins where its parent's is at the fork. */
    CIEL_ORDERED_LOCAL = 1,
    /* There is none: what is written is appended, in the order of the serial elision. */
    CIEL_ORDERED_SERIAL_APPEND = 2
};

/*
 * Opens a file and returns a descriptor, the lowest that is free; at most 65536 are open.
 * mode is of ciel_ordered_mode. flags are O_RDONLY, O_WRONLY or O_RDWR of <fcntl.h> with O_CREAT
 * and O_TRUNC; O_CLOEXEC is always implied. Serial-append implies O_APPEND and cannot be O_RDONLY;
 * other modes have no O_APPEND. permissions are those of a file that is created.
 * errno: those of open(2); EBUSY if the file is open for serial append already, here or in another
 * process; EMFILE; EFAULT if path is null.
 */
int ciel_ordered_open(const char *path, int mode, int flags, mode_t permissions);

/*
 * Reads at most length bytes at the pointer; returns how many, 0 at the end of the file.
 * errno: those of read(2); EBADF in mode serial-append.
 */
ssize_t ciel_ordered_read(int descriptor, void *buffer, size_t length);

/*
 * Writes all length bytes and returns length. The bytes are copied before it returns.
 * errno: those of write(2), also for bytes that were written before, then with the number of bytes
 * in the file that are valid in the message; EBADF after close.
 */
ssize_t ciel_ordered_write(int descriptor, const void *buffer, size_t length);

/*
 * Moves the pointer, and returns its distance from the begin of the file in bytes.
 * errno: those of lseek(2); ESPIPE in mode serial-append.
 */
off_t ciel_ordered_lseek(int descriptor, off_t offset, int whence);

/* The same open file by another descriptor: pointer and mode are shared. errno: EMFILE. */
int ciel_ordered_dup(int descriptor);

/*
 * Lets other, below 65536, be the same open file, and returns it. If other is open it is closed
 * first. errno: those of ciel_ordered_close for other, which stays open if it cannot be closed yet.
 */
int ciel_ordered_dup2(int descriptor, int other);

/*
 * Closes a descriptor. With the last one of a file open for serial append the file is complete;
 * all strands that come before the caller must have ended.
 * errno: EBUSY if they have not, EPERM on a thread that is no strand of the file: the descriptor
 * stays open. After any other error it is closed: ESTALE if the file was changed from outside, or
 * that of the last write.
 */
int ciel_ordered_close(int descriptor);

/*
 * Why the last call on this thread that failed did so: what happened and to which file. Never null.
 * It belongs to the library and is valid until the next call on this thread that fails.
 */
const char *ciel_ordered_error(void);

/* A strand: a part of the program that runs on one thread at a time. */
typedef struct ciel_ordered_strand ciel_ordered_strand;

/*
 * Forks a strand: what it writes precedes all that the caller writes from now on. The handle is to
 * be joined by ciel_ordered_join. Null on failure.
 */
ciel_ordered_strand *ciel_ordered_fork(void);

/*
 * From now on the calling thread runs as this strand, whatever it was before.
 * errno: EBUSY if the strand is entered on a thread already, or has ended.
 */
int ciel_ordered_enter(ciel_ordered_strand *strand);

/*
 * The thread is again what it was before it entered this strand, which may be entered again on any
 * thread. errno: EPERM if this is not the strand that the calling thread entered last.
 */
int ciel_ordered_leave(ciel_ordered_strand *strand);

/*
 * The strand has written its last byte; it is left first if the calling thread entered it last.
 * errno: EBUSY if it is entered on another thread, or has ended.
 */
int ciel_ordered_end(ciel_ordered_strand *strand);

/*
 * Ends the strand if it has not ended, and frees the handle. It does not wait: the host has to
 * have joined the thread or task. errno: EBUSY if the strand is entered; the handle stays.
 */
int ciel_ordered_join(ciel_ordered_strand *strand);

/*
 * For fork-join hosts that learn afterwards what ran elsewhere: where a strand is. It owns memory
 * only if files are open in mode local.
 */
typedef struct ciel_ordered_place {
    uintptr_t words[5];
} ciel_ordered_place;

/* Notes where the calling strand is. To be released by ciel_ordered_release. */
int ciel_ordered_here(ciel_ordered_place *place);

/*
 * Makes a detached strand, whose pointers in mode local begin where those of the place are. Any
 * thread may call it. What the strand writes is kept until ciel_ordered_append, and is lost with
 * ciel_ordered_join. Null on failure.
 */
ciel_ordered_strand *ciel_ordered_detached(const ciel_ordered_place *place);

/*
 * Puts what a detached strand has written behind all that the calling strand has, in constant time,
 * and frees the handle. errno: EBUSY if it is entered; the handle stays. EPERM if the strand was
 * forked, or descends from another thread than the caller; it is freed.
 */
int ciel_ordered_append(ciel_ordered_strand *strand);

/* Moves the caller's pointers in mode local back to where they were at the place. */
int ciel_ordered_rewind(const ciel_ordered_place *place);

/* Frees what a place owns. errno: EINVAL if it was released. */
int ciel_ordered_release(ciel_ordered_place *place);

/*
 * A view of a reducer, for hosts such as OpenCilk whose hyperobjects make a view when a thread
 * steals and reduce it when it joins. A view is used by one thread at a time:
 *
 *     ciel_ordered_view cilk_reducer(ciel_ordered_identity, ciel_ordered_reduce) log;
 *     ciel_ordered_view_begin(&log);
 *     ... ciel_ordered_view_write(&log, descriptor, "text", 4); in whatever strand ...
 *     ciel_ordered_view_end(&log);
 */
typedef struct ciel_ordered_view {
    ciel_ordered_strand *strand;
} ciel_ordered_view;

/* Fills a ciel_ordered_view with the empty view. Allocates nothing. */
void ciel_ordered_identity(void *view);

/*
 * Appends the right view to the left one, in constant time; the right one is empty afterwards. A
 * failure, of views whose files were opened by different threads, leaves a message.
 */
void ciel_ordered_reduce(void *left, void *right);

/* Fills a view with the leftmost one: it precedes all that the caller writes from now on. */
int ciel_ordered_view_begin(ciel_ordered_view *view);

/* Writes to a file in mode serial-append, by a view. As ciel_ordered_write. */
ssize_t ciel_ordered_view_write(ciel_ordered_view *view, int descriptor, const void *buffer,
                                size_t length);

/* Ends a view, which is empty afterwards. One that is neither leftmost nor reduced is lost. */
int ciel_ordered_view_end(ciel_ordered_view *view);

#ifdef __cplusplus
}
#endif

#endif
