//! Finds the processes below this one, and signals them.

use std::collections::HashMap;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Every process below this one, parents first. As the sub-reaper keeps whoever loses a parent, all
/// processes of the command are among them; one that forks meanwhile may be missing, so call again.
pub fn find() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, parent) in processes() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = children.remove(&Pid::this().as_raw()).unwrap_or_default();
    let mut next = 0;
    // Ends: each entry of `children` is taken once.
    while let Some(pid) = found.get(next) {
        let below = children.remove(pid).unwrap_or_default();
        found.extend(below);
        next += 1;
    }
    found.into_iter().map(Pid::from_raw).collect()
}

/// Signals all of them. Some may be gone or belong to another user; who is left shows at the next reap.
pub fn signal_all(signal: Signal) {
    for pid in find() {
        let _ = kill(pid, signal);
    }
}

/// All processes that /proc shows, with their parents.
fn processes() -> impl Iterator<Item = (i32, i32)> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read(entry.path().join("stat")).ok()?;
            Some((pid, parent_in(&stat)?))
        })
}

/// Field 4 of /proc/PID/stat. The name in field 2 may hold anything, parentheses too.
fn parent_in(stat: &[u8]) -> Option<i32> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parent_in;

    #[test]
    fn the_parent_stands_behind_any_name() {
        assert_eq!(parent_in(b"7 (sh) S 42 7 7"), Some(42));
        assert_eq!(parent_in(b"7 (a) S 1 (\xff) b) R 42 7 7"), Some(42));
        assert_eq!(parent_in(b"7 (sh) S"), None);
        assert_eq!(parent_in(b""), None);
    }
}
