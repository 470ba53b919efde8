//! Copies that pass the caches by, for what is too long to stay there.
//!
//! An ordinary copy reads the lines that it overwrites, and drives out of the caches what both
//! processes work with: 16 MiB took 1.7 times as long. It knows only memory. Read next:
//! `shared_memory`.

/// Shorter pieces are still in the caches when they are read: so they are copied as usual.
const BYTES_MIN: usize = 8 << 20;

/// Copies so many bytes, in whatever way is quicker.
///
/// # Safety
/// As `std::ptr::copy_nonoverlapping`.
pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    if bytes < BYTES_MIN {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        return;
    }
    // SAFETY: as the caller promises.
    unsafe { copy_long(from, to, bytes) };
}

/// # Safety
/// As `copy`.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_long(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

/// # Safety
/// As `copy`.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_long(from: *const u8, to: *mut u8, bytes: usize) {
    use std::ptr::copy_nonoverlapping;

    let head = to.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: all of it lies in what the caller gave.
    unsafe {
        copy_nonoverlapping(from, to, head);
        copy_lines(from.add(head), to.add(head), lines);
        copy_nonoverlapping(from.add(tail), to.add(tail), bytes - tail);
    }
}

/// Bytes of a line of the cache.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Copies lines without the caches. In assembly, since intrinsics without optimisation take a
/// hundred times as long.
///
/// # Safety
/// As `copy`; where they go is aligned to lines.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_lines(from: *const u8, to: *mut u8, lines: usize) {
    if lines == 0 {
        return;
    }
    // SAFETY: as the caller promises; the fence orders these writes before any later one.
    unsafe {
        std::arch::asm!(
            "2:",
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movntps [{to}], {a}",
            "movntps [{to} + 16], {b}",
            "movntps [{to} + 32], {c}",
            "movntps [{to} + 48], {d}",
            "add {from}, 64",
            "add {to}, 64",
            "sub {lines}, 1",
            "jnz 2b",
            "sfence",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            lines = inout(reg) lines => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
}
