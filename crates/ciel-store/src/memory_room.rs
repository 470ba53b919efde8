//! How many bytes of objects may be in memory if nobody says it, and how many processes may have.
//!
//! It reads what the machine and the control groups of this process allow and leave. Pure but for
//! `read`. Read next: `memory_folder`.

use std::fs;

/// A run's objects take at most this part of what is left.
const SHARE: u64 = 4;

/// A quarter of the memory that the machine and the control groups of this process leave now, in
/// bytes; 0 if it cannot be told.
pub fn default_memory() -> u64 {
    let groups = read("/proc/self/cgroup");
    let left_by_groups = groups.lines().filter_map(left_by_group);
    let machine = available(&read("/proc/meminfo"));
    left_by_groups.chain([machine]).min().unwrap_or_default() / SHARE
}

/// The least that a control group of this process allows its processes, in bytes; none without a
/// limit.
pub fn group_memory() -> Option<u64> {
    let groups = read("/proc/self/cgroup");
    let files = groups.lines().filter_map(files_of_group).flatten();
    files
        .filter_map(|(limit, _)| read(&limit).trim().parse().ok())
        .min()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Bytes that programs can have without swapping, from `/proc/meminfo`.
fn available(text: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or_default()
        << 10
}

/// Where a line of `/proc/self/cgroup` says that the limit of memory is, and what is used of it:
/// the path of the group and that of its root, which is the group's own in a container.
fn files_of_group(line: &str) -> Option<[(String, String); 2]> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (root, limit, used) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
        names if names.split(',').any(|name| name == "memory") => (
            "/sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        ),
        _ => return None,
    };
    let file = |group: &str, name: &str| format!("{root}{group}/{name}");
    let path = path.trim_end_matches('/');
    Some([
        (file(path, limit), file(path, used)),
        (file("", limit), file("", used)),
    ])
}

fn left_by_group(line: &str) -> Option<u64> {
    let files = files_of_group(line)?.into_iter();
    let left = |(limit, used): (String, String)| left(&read(&limit), &read(&used));
    files.filter_map(left).min()
}

/// Bytes of a limit that are not used; none without a limit.
fn left(limit: &str, used: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok()?;
    let used: u64 = used.trim().parse().ok()?;
    Some(limit.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_left_is_read_from_the_machine_and_both_kinds_of_groups() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   3 kB\n"), 3072);
        assert_eq!(available(""), 0);
        assert_eq!(
            (left("100\n", "30\n"), left("max\n", "30\n")),
            (Some(70), None)
        );
        let [(limit, used), (root, _)] = files_of_group("0::/a/b").unwrap();
        assert_eq!(limit, "/sys/fs/cgroup/a/b/memory.max");
        assert_eq!(used, "/sys/fs/cgroup/a/b/memory.current");
        assert_eq!(root, "/sys/fs/cgroup/memory.max");
        let [(limit, _), _] = files_of_group("4:memory,x:/c").unwrap();
        assert_eq!(limit, "/sys/fs/cgroup/memory/c/memory.limit_in_bytes");
        assert_eq!(files_of_group("3:cpuset:/"), None);
    }
}
