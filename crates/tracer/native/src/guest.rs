//! The program's memory, read and written without trusting its pointers.

/// Reads as many bytes as there are, up to a length.
pub(crate) fn read(address: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; len];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: len };
    // Page by page: what is behind a page that is not there is not asked for.
    let first = (4096 - address % 4096).min(len as u64) as usize;
    let second = (len - first).min(4096);
    let third = len - first - second;
    let mut from = address;
    let remote = [first, second, third].map(|len| {
        let piece = libc::iovec { iov_base: from as *mut _, iov_len: len };
        from = from.wrapping_add(len as u64);
        piece
    });
    // SAFETY: the kernel checks every address; what it writes to is ours.
    let count = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, remote.as_ptr(), 3, 0)
    };
    bytes.truncate(count.max(0) as usize);
    bytes
}

/// Writes bytes; whether all could be.
pub(crate) fn write(address: u64, bytes: &[u8]) -> bool {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
    // SAFETY: the kernel checks every address; ours is only read.
    let count = unsafe {
        libc::process_vm_writev(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    count == bytes.len() as isize
}

/// Reads words; `None` if not all can be.
pub(crate) fn words<const COUNT: usize>(address: u64) -> Option<[u64; COUNT]> {
    let bytes = read(address, COUNT * 8);
    let mut all = [0; COUNT];
    if bytes.len() < COUNT * 8 {
        return None;
    }
    for (word, piece) in all.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(piece.try_into().ok()?);
    }
    Some(all)
}

/// Writes words; whether all could be.
pub(crate) fn write_words(address: u64, words: &[u64]) -> bool {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    write(address, &bytes)
}
