//! Envoy's code, constants and heap in huge pages.
//!
//! What Envoy does for one request is spread over a thousand functions of 64 MiB. In pages of 4 KiB
//! the processor forgets where they are faster than a request comes round, which costs about a tenth
//! of Envoy's CPU time (bench/README.md). So the code is copied to huge pages of the same contents and
//! the same rights, which take its place in one step: threads that run it see no difference.

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mprotect,
    mremap_fixed, munmap,
};
use std::fs;

const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// Larger ones (512 MiB where pages have 64 KiB) would hold far more than there is.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Envoy's allocator keeps address space in pieces of about 1 GiB, of which it opens what it needs.
const HEAP_BYTES_MIN: usize = 512 << 20;

/// Moves Envoy to huge pages; the bytes of code and constants that are in them now.
///
/// # Errors
/// Why not: then all is as it was.
pub fn adopt() -> Result<usize, String> {
    let page = page_bytes()?;
    let maps = read("/proc/self/maps")?;
    let program =
        fs::read_link("/proc/self/exe").map_err(|why| format!("/proc/self/exe: {why}"))?;
    let program = program.to_string_lossy();
    let mappings: Vec<Mapping> = maps.lines().filter_map(Mapping::parse).collect();
    for heap in heap_of(&mappings) {
        // Its pages are made later; where this fails they are small ones.
        let _ = unsafe { madvise(pointer(heap.start), heap.bytes(), Advice::LinuxHugepage) };
    }
    let mut moved = 0;
    for mapping in mappings.iter().filter(|mapping| mapping.path == program) {
        let (start, end) = (
            mapping.start.next_multiple_of(page),
            mapping.end / page * page,
        );
        if !mapping.is_constant() || end <= start {
            continue;
        }
        // The program's own mapping, read-only for good, of which this is a part.
        unsafe { replace(start, end - start, page, mapping.is_code) }?;
        moved += end - start;
    }
    Ok(moved)
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|why| format!("{path}: {why}"))
}

fn page_bytes() -> Result<usize, String> {
    if read(&format!("{SETTINGS}/enabled"))?.contains("[never]") {
        return Err(format!(
            "the kernel gives none, {SETTINGS}/enabled says never"
        ));
    }
    let text = read(&format!("{SETTINGS}/hpage_pmd_size"))?;
    match text.trim().parse() {
        Ok(bytes) if bytes <= PAGE_BYTES_MAX => Ok(bytes),
        _ => Err(format!("those of this machine have {} bytes", text.trim())),
    }
}

/// One line of /proc/self/maps.
struct Mapping<'a> {
    start: usize,
    end: usize,
    is_readable: bool,
    is_writable: bool,
    is_code: bool,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    /// `start-end rights offset device inode path`
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let rights = words.next()?.as_bytes();
        Some(Self {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            is_readable: rights.first() == Some(&b'r'),
            is_writable: rights.get(1) == Some(&b'w'),
            is_code: rights.get(2) == Some(&b'x'),
            path: words.nth(3).unwrap_or_default().trim_start(),
        })
    }

    fn bytes(&self) -> usize {
        self.end - self.start
    }

    fn is_constant(&self) -> bool {
        self.is_readable && !self.is_writable
    }

    /// Address space that was only reserved.
    fn is_reserve(&self) -> bool {
        self.path.is_empty() && !self.is_readable && self.bytes() >= HEAP_BYTES_MIN
    }
}

/// The allocator's reserves, and what it opened of them: it does so from the upper end.
fn heap_of<'m, 'a>(mappings: &'m [Mapping<'a>]) -> impl Iterator<Item = &'m Mapping<'a>> {
    let opened = |at: usize, mapping: &Mapping| {
        let below = at.checked_sub(1).map(|before| &mappings[before]);
        mapping.is_writable
            && mapping.path.is_empty()
            && below.is_some_and(|below| below.is_reserve() && below.end == mapping.start)
    };
    let all = mappings.iter().enumerate();
    all.filter(move |(at, mapping)| mapping.is_reserve() || opened(*at, mapping))
        .map(|(_, mapping)| mapping)
}

fn pointer(address: usize) -> *mut core::ffi::c_void {
    core::ptr::with_exposed_provenance_mut(address)
}

/// Puts huge pages with the same bytes and rights in the place of `bytes` from `start`.
///
/// # Safety
/// The range is mapped, readable, and nobody ever writes to it; it begins and ends at huge pages.
unsafe fn replace(start: usize, bytes: usize, page: usize, is_code: bool) -> Result<(), String> {
    let rights = if is_code {
        MprotectFlags::READ | MprotectFlags::EXEC
    } else {
        MprotectFlags::READ
    };
    let copy = Copy::new(bytes, page)?;
    unsafe {
        let at = pointer(copy.at);
        // Where this fails the pages are small ones, as before.
        let _ = madvise(at, bytes, Advice::LinuxHugepage);
        at.cast::<u8>()
            .copy_from_nonoverlapping(pointer(start).cast(), bytes);
        mprotect(at, bytes, rights).map_err(|why| format!("no right to a copy: {why}"))?;
    }
    unsafe { copy.put(start) }
}

/// Memory that begins at a huge page; given back when dropped.
struct Copy {
    at: usize,
    bytes: usize,
}

impl Copy {
    fn new(bytes: usize, page: usize) -> Result<Self, String> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // Anywhere: replaces nothing. What is before and after the huge pages goes back at once.
        unsafe {
            let room = bytes + page;
            let start = mmap_anonymous(core::ptr::null_mut(), room, rights, MapFlags::PRIVATE)
                .map_err(|why| format!("no memory for {room} bytes: {why}"))?
                .expose_provenance();
            let at = start.next_multiple_of(page);
            for (start, end) in [(start, at), (at + bytes, start + room)] {
                if end > start {
                    let _ = munmap(pointer(start), end - start);
                }
            }
            Ok(Self { at, bytes })
        }
    }

    /// Takes the place of what is at `start`.
    ///
    /// # Safety
    /// As of `replace`.
    unsafe fn put(self, start: usize) -> Result<(), String> {
        let Self { at, bytes } = self;
        let moved = unsafe {
            mremap_fixed(
                pointer(at),
                bytes,
                bytes,
                MremapFlags::MAYMOVE,
                pointer(start),
            )
        };
        moved.map_err(|why| format!("no exchange: {why}"))?;
        // It is gone from where it was: others may be there now.
        core::mem::forget(self);
        Ok(())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = unsafe { munmap(pointer(self.at), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Copy, Mapping, heap_of, pointer, replace};

    const MAPS: &str = "\
314480000000-3144bf800000 ---p 00000000 00:00 0 
3144bf800000-3144c0000000 rw-p 00000000 00:00 0 
55bb04e25000-55bb08f8b000 r-xp 0207d000 fe:00 9977950                    /opt/my envoy
55bb09318000-55bb0936a000 rw-p 0656f000 fe:00 9977950                    /opt/my envoy
60e640000000-60e640002000 rw-p 00000000 00:00 0 
";

    #[test]
    fn mappings_are_read_and_the_heap_is_found() {
        let all: Vec<Mapping> = MAPS.lines().filter_map(Mapping::parse).collect();
        assert_eq!(all.len(), 5);
        assert!(all[2].is_code && all[2].is_constant() && all[2].path == "/opt/my envoy");
        assert!(!all[3].is_constant());
        let heap: Vec<usize> = heap_of(&all).map(|mapping| mapping.start).collect();
        assert_eq!(heap, [0x3144_8000_0000, 0x3144_bf80_0000]);
    }

    #[test]
    fn what_is_replaced_reads_the_same() {
        let page = 2 << 20;
        let memory = core::mem::ManuallyDrop::new(Copy::new(page, page).expect("memory"));
        let start = memory.at;
        let bytes = unsafe { core::slice::from_raw_parts_mut(pointer(start).cast::<u8>(), page) };
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::try_from(at % 251).unwrap_or(0);
        }
        unsafe { replace(start, page, page, true) }.expect("replaced");
        let bytes = unsafe { core::slice::from_raw_parts(pointer(start).cast::<u8>(), page) };
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(at, byte)| usize::from(*byte) == at % 251)
        );
    }
}
