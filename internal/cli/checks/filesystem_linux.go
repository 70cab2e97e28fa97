package checks

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FileSystem returns the kind of the file system that contains path, such as "ext4". It
// returns a hexadecimal number for a kind that it does not know.
func FileSystem(path string) (kind string, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return "", err
	}
	magic := int64(fs.Type) //nolint:unconvert // conversion needed on arm, 386, mips and s390x, where fs.Type has 32 bits
	kind, ok := fileSystems[magic&0xffffffff]
	if !ok {
		kind = fmt.Sprintf("%#x", magic)
	}
	return kind, nil
}

// fileSystems maps the field f_type of statfs(2) to the name of the file system.
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", 0x2fc12fc1: "zfs",
	unix.F2FS_SUPER_MAGIC: "f2fs", unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.MSDOS_SUPER_MAGIC: "vfat",
	unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", 0xff534d42: "cifs", 0xfe534d42: "smb2", unix.V9FS_MAGIC: "9p",
	unix.FUSE_SUPER_MAGIC: "fuse", unix.AFS_SUPER_MAGIC: "afs", unix.CODA_SUPER_MAGIC: "coda", 0x00c36400: "ceph",
	0x0bd00bd0: "lustre", 0x47504653: "gpfs", 0x01161970: "gfs2", 0x7461636f: "ocfs2", 0x786f4256: "vboxsf",
}
