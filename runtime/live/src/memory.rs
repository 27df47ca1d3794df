//! How the system's allocator keeps the memory of a run that never ends. Nothing of ours is here.

/// Every buffer of this size or more is memory of its own, given back when it is freed. glibc's
/// own threshold begins here too, but follows what is freed up to 32 MiB: after the first of sled's
/// buffers of 512 KiB, or of a head, they come from the heap that small and lasting values share,
/// which falls to pieces: measured, it held three times what was in use. A fixed threshold stays.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_BYTES: libc::c_int = 128 * 1024;

/// Gives the system what the allocator keeps though nothing is in it: a thread that read a whole segment
/// of the journal leaves megabytes of small free pieces, which no other thread would use.
#[cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "a call of the C library that takes one number")
)]
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim locks what it changes and gives back pages that hold nothing.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Settles it for this process; other allocators have no such threshold.
#[cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "a call of the C library that sets one number")
)]
pub fn settle() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: mallopt locks what it changes, reads nothing of ours and keeps nothing.
        let taken = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_BYTES) };
        if taken == 0 {
            tracing::warn!("the allocator keeps a threshold of its own; memory may grow at first");
        }
    }
}
