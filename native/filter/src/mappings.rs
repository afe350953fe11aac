//! What this process has mapped, as /proc/self/maps says.

/// Envoy's allocator keeps address space in pieces of about 1 GiB, of which it opens what it needs.
const HEAP_BYTES_MIN: usize = 512 << 20;

/// A part of the program.
pub struct Range {
    pub start: usize,
    pub bytes: usize,
    pub is_code: bool,
}

/// One line of /proc/self/maps.
pub struct Mapping<'a> {
    pub start: usize,
    pub end: usize,
    is_readable: bool,
    is_writable: bool,
    is_code: bool,
    pub path: &'a str,
}

impl<'a> Mapping<'a> {
    /// `start-end rights offset device inode path`
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
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

    #[must_use]
    pub fn bytes(&self) -> usize {
        self.end - self.start
    }

    /// The huge pages that lie in it wholly.
    #[must_use]
    pub fn whole_pages(&self, page: usize) -> Option<Range> {
        let start = self.start.next_multiple_of(page);
        let bytes = (self.end / page * page).checked_sub(start)?;
        (bytes > 0).then_some(Range {
            start,
            bytes,
            is_code: self.is_code,
        })
    }

    /// Memory of no file; the allocator may have given it a name.
    fn is_anonymous(&self) -> bool {
        self.path.is_empty() || self.path.starts_with("[anon:tcmalloc")
    }

    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.is_readable && !self.is_writable
    }

    /// Address space that was only reserved.
    fn is_reserve(&self) -> bool {
        self.is_anonymous() && !self.is_readable && self.bytes() >= HEAP_BYTES_MIN
    }
}

/// The allocator's reserves, and what it opened of them: it does so from the upper end.
pub fn heap_of<'m, 'a>(mappings: &'m [Mapping<'a>]) -> impl Iterator<Item = &'m Mapping<'a>> {
    let opened = |at: usize, mapping: &Mapping| {
        let below = at.checked_sub(1).map(|before| &mappings[before]);
        mapping.is_writable
            && mapping.is_anonymous()
            && below.is_some_and(|below| below.is_reserve() && below.end == mapping.start)
    };
    let all = mappings.iter().enumerate();
    all.filter(move |(at, mapping)| mapping.is_reserve() || opened(*at, mapping))
        .map(|(_, mapping)| mapping)
}

#[cfg(test)]
mod tests {
    use super::{Mapping, heap_of};

    const MAPS: &str = "\
314480000000-3144bf800000 ---p 00000000 00:00 0 
3144bf800000-3144c0000000 rw-p 00000000 00:00 0 
55bb04e25000-55bb08f8b000 r-xp 0207d000 fe:00 9977950                    /opt/my envoy
55bb09318000-55bb0936a000 rw-p 0656f000 fe:00 9977950                    /opt/my envoy
60e640000000-60e640002000 rw-p 00000000 00:00 0 
6f7f40000000-6f7f7fe00000 ---p 00000000 00:00 0                          [anon:tcmalloc_region_NORMAL]
6f7f7fe00000-6f7f80000000 rw-p 00000000 00:00 0                          [anon:tcmalloc_region_NORMAL]
";

    #[test]
    fn mappings_are_read_and_the_heap_is_found() {
        let all: Vec<Mapping> = MAPS.lines().filter_map(Mapping::parse).collect();
        assert_eq!(all.len(), 7);
        assert!(all[2].is_code && all[2].is_constant() && all[2].path == "/opt/my envoy");
        assert!(!all[3].is_constant());
        let heap: Vec<usize> = heap_of(&all).map(|mapping| mapping.start).collect();
        assert_eq!(
            heap,
            [
                0x3144_8000_0000,
                0x3144_bf80_0000,
                0x6f7f_4000_0000,
                0x6f7f_7fe0_0000
            ]
        );
    }
}
