//! How much memory this process may still take.

use std::fs;

/// By the machine and by the limits of its control group (v2, v1), in bytes; what cannot be read limits nothing.
#[must_use]
pub fn left() -> usize {
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = folders_of(&group).into_iter().filter_map(|folder| {
        let read = |name: &str| fs::read_to_string(format!("{folder}/{name}")).ok();
        let number = |names: [&str; 2]| names.into_iter().find_map(read)?.trim().parse().ok();
        let max: usize = number(["memory.max", "memory.limit_in_bytes"])?;
        let used: usize = number(["memory.current", "memory.usage_in_bytes"])?;
        // Pages of files go when memory is wanted.
        let files = file_bytes(&read("memory.stat").unwrap_or_default());
        Some(max.saturating_sub(used.saturating_sub(files)))
    });
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(available_bytes);
    groups.chain(machine).min().unwrap_or(usize::MAX)
}

/// Where the limits of this process stand: its own group and all above it, as the process sees them.
fn folders_of(cgroup: &str) -> Vec<String> {
    let mut folders = Vec::new();
    for line in cgroup.lines() {
        let mut words = line.splitn(3, ':');
        let (_, controllers, path) = (words.next(), words.next(), words.next());
        let root = match controllers {
            Some("") => "/sys/fs/cgroup",
            Some(names) if names.split(',').any(|name| name == "memory") => "/sys/fs/cgroup/memory",
            _ => continue,
        };
        let mut path = path.unwrap_or("").trim_end_matches('/');
        loop {
            folders.push(format!("{root}{path}"));
            let Some(at) = path.rfind('/') else { break };
            path = &path[..at];
        }
    }
    folders
}

/// What a control group holds of files, by its memory.stat.
fn file_bytes(stat: &str) -> usize {
    let bytes_of = |line: &str| {
        let (name, bytes) = line.split_once(' ')?;
        let counts = matches!(name, "inactive_file" | "active_file");
        counts.then(|| bytes.parse::<usize>().ok())?
    };
    stat.lines().filter_map(bytes_of).sum()
}

fn available_bytes(meminfo: &str) -> Option<usize> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::{available_bytes, file_bytes, folders_of, left};

    #[test]
    fn limits_of_all_groups_count() {
        let v2 = folders_of("0::/system.slice/belay.service\n");
        assert_eq!(
            v2,
            [
                "/sys/fs/cgroup/system.slice/belay.service",
                "/sys/fs/cgroup/system.slice",
                "/sys/fs/cgroup"
            ]
        );
        let v1 = folders_of("5:cpu,cpuacct:/x\n4:memory:/docker/1\n");
        assert_eq!(v1[0], "/sys/fs/cgroup/memory/docker/1");
        assert_eq!(v1.len(), 3);
    }

    #[test]
    fn pages_of_files_are_no_use() {
        let stat = "anon 9\nfile 7\ninactive_file 3\nactive_file 4\ninactive_anon 5\n";
        assert_eq!(file_bytes(stat), 7);
    }

    #[test]
    fn the_machine_has_some_memory_left() {
        assert_eq!(
            available_bytes("MemFree: 1 kB\nMemAvailable:   2048 kB\n"),
            Some(2 << 20)
        );
        assert!(left() > 1 << 20);
    }
}
