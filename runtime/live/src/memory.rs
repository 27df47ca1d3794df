//! Settings of the system's allocator for a run that never ends.

/// Every buffer of this many bytes or more gets its own memory mapping, which is returned when the
/// buffer is freed.
///
/// glibc starts with the same threshold but raises it, up to 32 MiB, when larger buffers are freed.
/// After the first 512 KiB buffer of sled, or the first checkpoint, such buffers would come from
/// the heap that small and long-lived values share. That heap then fragments: it held three times
/// the memory in use when we measured it. A fixed threshold avoids this.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_BYTES: libc::c_int = 128 * 1024;

/// Returns unused memory of the allocator to the system. A thread that read a whole journal segment
/// leaves megabytes of small free pieces, which no other thread would use.
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

/// Fixes the threshold for this process. Does nothing with other allocators, which have no such
/// threshold.
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
            tracing::warn!(
                "could not set the allocator's threshold: the process may use more memory than \
                 usual; trading is not affected"
            );
        }
    }
}
