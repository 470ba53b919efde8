//! Whether files are on another machine. There, locks may be unreliable and a mapped file may
//! change under its reader, so a state folder does not belong there.
//!
//! The kernel numbers the kinds of file systems; it does not distinguish one that a program serves
//! (FUSE) from another, so for these the name of the mount decides. It does not know what is done
//! about it. Read next: `folder`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The number of all file systems that programs serve.
const FUSE: u32 = 0x6573_5546;

/// Numbers of file systems whose files are on other machines, and their usual names.
const NETWORK_KINDS: [(u32, &str); 13] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x2003_0528, "OrangeFS"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
];

/// Names of mounts that programs serve from other machines.
const NETWORK_MOUNTS: [(&str, &str); 11] = [
    ("fuse.sshfs", "sshfs"),
    ("fuse.rclone", "rclone"),
    ("fuse.s3fs", "s3fs"),
    ("fuse.gcsfuse", "gcsfuse"),
    ("fuse.mount-s3", "S3"),
    ("fuse.glusterfs", "GlusterFS"),
    ("fuse.ceph", "Ceph"),
    ("fuse.ceph-fuse", "Ceph"),
    ("fuse.juicefs", "JuiceFS"),
    ("fuse.mfs", "MooseFS"),
    ("fuse.davfs", "WebDAV"),
];

/// The usual name of a file system whose files are on another machine; none for a local one.
/// `magic` is the number that `statfs` gives, `mount` the type of the mount, which decides among
/// those that programs serve; one that is not known there is taken for local.
pub fn kind_of(magic: u32, mount: Option<&str>) -> Option<&'static str> {
    if magic == FUSE {
        let known = NETWORK_MOUNTS.iter().find(|(name, _)| mount == Some(name));
        return known.map(|(_, words)| *words);
    }
    let known = NETWORK_KINDS.iter().find(|(number, _)| *number == magic);
    known.map(|(_, words)| *words)
}

/// The type of the mount with this device number in the text of `/proc/self/mountinfo`.
pub fn mount_type(mounts: &str, major: u32, minor: u32) -> Option<&str> {
    let device = format!("{major}:{minor}");
    let line = mounts
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(device.as_str()))?;
    let (_, behind) = line.split_once(" - ")?;
    behind.split(' ').next()
}

/// The same for the file system that a path is on, or would be on if it was created. One that
/// cannot be asked is taken for local.
pub fn kind_at(path: &Path) -> Option<&'static str> {
    let path = std::path::absolute(path).ok()?;
    let there = path.ancestors().find(|ancestor| ancestor.exists())?;
    // The number has 32 bits, and is wider or signed on some machines.
    let magic = rustix::fs::statfs(there).ok()?.f_type as u32;
    if magic != FUSE {
        return kind_of(magic, None);
    }
    let device = fs::metadata(there).ok()?.dev();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    kind_of(magic, mount_type(&mounts, major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_the_file_system_tells_whether_it_is_on_the_network() {
        let cases = [
            (0x6969, Some("NFS")),
            (0xff53_4d42, Some("CIFS")),
            (0x0bd0_0bd0, Some("Lustre")),
            (0x4750_4653, Some("GPFS")),
            (0x0102_1997, Some("9p")),
            (0x00c3_6400, Some("Ceph")),
            (0xef53, None),
            (0x5846_5342, None),
            (0x9123_683e, None),
            (0x0102_1994, None),
            (0x794c_7630, None),
        ];
        for (magic, kind) in cases {
            assert_eq!(kind_of(magic, None), kind, "{magic:x}");
        }
    }

    #[test]
    fn mount_decides_where_a_program_serves_the_files() {
        assert_eq!(kind_of(FUSE, Some("fuse.sshfs")), Some("sshfs"));
        assert_eq!(kind_of(FUSE, Some("fuse.fuse-overlayfs")), None);
        assert_eq!(kind_of(FUSE, None), None);
        assert_eq!(kind_of(0xef53, Some("fuse.sshfs")), None);
    }

    #[test]
    fn mount_is_found_by_its_device() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      97 22 0:51 / /home/ada/far rw,nosuid - fuse.sshfs ada@far: rw\n";
        assert_eq!(mount_type(mounts, 0, 51), Some("fuse.sshfs"));
        assert_eq!(mount_type(mounts, 8, 1), Some("ext4"));
        assert_eq!(mount_type(mounts, 8, 2), None);
    }

    #[test]
    fn path_that_is_not_there_yet_lies_where_its_folder_does() {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().join("not/made/yet");
        assert_eq!(kind_at(&inside), kind_at(home.path()));
    }
}
