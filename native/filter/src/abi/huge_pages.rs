//! Envoy's code, constants and heap in huge pages.
//!
//! What Envoy does for one request is spread over a thousand functions of 64 MiB. In pages of 4 KiB
//! the processor forgets where they are faster than a request comes round, which costs about a
//! seventh of an edge's CPU time (bench/README.md). So the code is copied to huge pages of the same contents and
//! the same rights, which take its place in one step: threads that run it see no difference.

use crate::mappings::{Mapping, Range, heap_of};
use crate::memory;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mprotect,
    mremap_fixed, munmap,
};
use std::fs;

const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// Larger ones (512 MiB where pages have 64 KiB) would hold far more than there is.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Memory that must be left when the copies are made.
const SPARE_BYTES: usize = 128 << 20;

/// Moves Envoy to huge pages; the bytes of code and constants that are in them now.
///
/// # Errors
/// Why not. All is as it was, unless the kernel refuses the exchange itself, the last step.
pub fn adopt() -> Result<usize, String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("this is done on x86-64 only".to_owned());
    }
    let page = page_bytes()?;
    let maps = read("/proc/self/maps")?;
    let program =
        fs::read_link("/proc/self/exe").map_err(|why| format!("/proc/self/exe: {why}"))?;
    let program = program.to_string_lossy();
    let mappings: Vec<Mapping> = maps.lines().filter_map(Mapping::parse).collect();
    let constants = mappings
        .iter()
        .filter(|mapping| mapping.path == program && mapping.is_constant())
        .filter_map(|mapping| mapping.whole_pages(page));
    let constants: Vec<Range> = constants.collect();
    let bytes = constants.iter().map(|range| range.bytes).sum();
    require_memory(bytes)?;
    let copies = constants
        .iter()
        // The program's own mappings, which are read-only for good.
        .map(|range| unsafe { Copy::of(range, page) })
        .collect::<Result<Vec<Copy>, String>>()?;
    let huge = huge_bytes(
        &read("/proc/self/smaps")?,
        &copies.iter().collect::<Vec<_>>(),
    );
    if huge < bytes / 2 {
        return Err(format!("the kernel gave {huge} bytes of them for {bytes}"));
    }
    for (copy, range) in copies.into_iter().zip(&constants) {
        unsafe { copy.put(range.start) }?;
    }
    for heap in heap_of(&mappings) {
        // Its pages are made later; where this fails they are small ones.
        let _ = unsafe { madvise(pointer(heap.start), heap.bytes(), Advice::LinuxHugepage) };
    }
    Ok(bytes)
}

/// Copies are no file's pages, which the kernel could take back: without room for them it would end Envoy.
fn require_memory(bytes: usize) -> Result<(), String> {
    let wanted = bytes + SPARE_BYTES;
    let left = memory::left();
    if left < wanted {
        return Err(format!(
            "{left} bytes of memory are left, {wanted} are wanted"
        ));
    }
    Ok(())
}

/// How much of the copies is in huge pages, by /proc/self/smaps.
fn huge_bytes(smaps: &str, copies: &[&Copy]) -> usize {
    let mut is_ours = false;
    let mut total = 0;
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("AnonHugePages:") {
            let kib: usize = size.trim().trim_end_matches(" kB").parse().unwrap_or(0);
            total += if is_ours { kib << 10 } else { 0 };
        } else if let Some(mapping) = Mapping::parse(line) {
            let overlaps =
                |copy: &&Copy| mapping.start < copy.at + copy.bytes && copy.at < mapping.end;
            is_ours = copies.iter().any(overlaps);
        }
    }
    total
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

fn pointer(address: usize) -> *mut core::ffi::c_void {
    core::ptr::with_exposed_provenance_mut(address)
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

    /// The same bytes with the same rights, in huge pages as far as there are any.
    ///
    /// # Safety
    /// The range is mapped and readable.
    unsafe fn of(range: &Range, page: usize) -> Result<Self, String> {
        let copy = Self::new(range.bytes, page)?;
        let mut rights = MprotectFlags::READ;
        rights.set(MprotectFlags::EXEC, range.is_code);
        unsafe {
            let at = pointer(copy.at);
            let _ = madvise(at, range.bytes, Advice::LinuxHugepage);
            at.cast::<u8>()
                .copy_from_nonoverlapping(pointer(range.start).cast(), range.bytes);
            mprotect(at, range.bytes, rights)
                .map_err(|why| format!("no right to a copy: {why}"))?;
        }
        Ok(copy)
    }

    /// Takes the place of what is at `start`.
    ///
    /// # Safety
    /// There are as many bytes, the same ones, and nobody ever writes to them.
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
    use super::{Copy, Range, huge_bytes, pointer};

    #[test]
    fn what_is_replaced_reads_the_same() {
        let page = 2 << 20;
        let memory = core::mem::ManuallyDrop::new(Copy::new(page, page).expect("memory"));
        let bytes =
            unsafe { core::slice::from_raw_parts_mut(pointer(memory.at).cast::<u8>(), page) };
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::try_from(at % 251).unwrap_or(0);
        }
        let range = Range {
            start: memory.at,
            bytes: page,
            is_code: true,
        };
        unsafe { Copy::of(&range, page).and_then(|copy| copy.put(range.start)) }.expect("replaced");
        let bytes = unsafe { core::slice::from_raw_parts(pointer(memory.at).cast::<u8>(), page) };
        let same = |(at, byte): (usize, &u8)| usize::from(*byte) == at % 251;
        assert!(bytes.iter().enumerate().all(same));
    }

    #[test]
    fn the_huge_pages_of_copies_are_counted() {
        let copies = [core::mem::ManuallyDrop::new(Copy {
            at: 0x20_0000,
            bytes: 0x20_0000,
        })];
        let smaps = "\
00100000-00200000 rw-p 00000000 00:00 0 
AnonHugePages:      2048 kB
00200000-00600000 r-xp 00000000 00:00 0 
Rss:                4096 kB
AnonHugePages:      4096 kB
";
        let copies: Vec<&Copy> = copies.iter().map(|copy| &**copy).collect();
        assert_eq!(huge_bytes(smaps, &copies), 4 << 20);
    }
}
