//! Identifies the hardware of this machine, to distinguish it from a machine that runs a copy of its disk.

use std::fs;
use std::path::{Path, PathBuf};

use hyperfleet_fleet::agent::Host;

/// The kernel's id of this boot (`random(4)`).
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
/// Number of the machine or the virtual machine, by its firmware: on PCs and servers, and on boards with a device tree.
const NUMBERS: [&str; 2] = [
    "sys/class/dmi/id/product_uuid",
    "proc/device-tree/serial-number",
];
/// systemd makes this file in containers.
const CONTAINER: &str = "run/systemd/container";
const NETWORK: &str = "sys/class/net";

/// This boot of this machine; `None` if its hardware has nothing that identifies it, or serves other systems, too.
pub(super) fn host(directory: PathBuf) -> Option<Host> {
    host_at(Path::new("/"), directory)
}

fn host_at(root: &Path, directory: PathBuf) -> Option<Host> {
    if root.join(CONTAINER).exists() {
        return None;
    }
    let read = |path: &str| {
        let text = fs::read_to_string(root.join(path)).ok()?;
        let text = text.trim_end_matches('\0').trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    let number = NUMBERS.into_iter().find_map(read)?;
    // Vendors ship boards with the same number, and hypervisors give machines the same address.
    let addresses = network_addresses(&root.join(NETWORK));
    let boot = read(BOOT_ID)?;
    (!addresses.is_empty()).then(|| Host {
        hardware: format!("{number} {}", addresses.join(" ")),
        boot,
        directory,
    })
}

/// The addresses of network devices that are hardware, sorted.
fn network_addresses(folder: &Path) -> Vec<String> {
    let devices = fs::read_dir(folder).into_iter().flatten().flatten();
    let devices = devices.map(|entry| entry.path());
    let hardware = devices.filter(|device| device.join("device").exists());
    let addresses = hardware.filter_map(|device| fs::read_to_string(device.join("address")).ok());
    let mut addresses: Vec<_> = addresses.map(|text| text.trim().to_owned()).collect();
    addresses.sort();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "sys/class/dmi/id/product_uuid";
    const SERIAL: &str = "proc/device-tree/serial-number";
    const ETH: &str = "sys/class/net/eth0/address";

    /// A machine with these files. Network devices whose names begin with `eth` are hardware.
    fn hardware(files: &[(&str, &str)]) -> Option<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files.iter().chain(&[(BOOT_ID, "boot\n")]) {
            let path = root.path().join(path);
            let folder = path.parent().unwrap();
            fs::create_dir_all(folder).unwrap();
            if folder
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("eth")
            {
                fs::write(folder.join("device"), "").unwrap();
            }
            fs::write(&path, text).unwrap();
        }
        let host = host_at(root.path(), PathBuf::new())?;
        assert_eq!(host.boot, "boot");
        Some(host.hardware)
    }

    #[test]
    fn hardware_is_its_number_and_its_network_addresses() {
        let files = [
            (UUID, "4C4C\n"),
            ("sys/class/net/eth1/address", "02:02\n"),
            (ETH, "02:01\n"),
            ("sys/class/net/br0/address", "0e:01\n"),
        ];
        assert_eq!(hardware(&files).as_deref(), Some("4C4C 02:01 02:02"));
        let board = [(SERIAL, "1000000\0"), (ETH, "02:01\n")];
        assert_eq!(hardware(&board).as_deref(), Some("1000000 02:01"));
    }

    #[test]
    fn what_several_systems_may_share_identifies_none() {
        for files in [
            &[(ETH, "02:01\n")][..],
            &[(UUID, "4C4C\n")],
            &[(UUID, "\n"), (ETH, "02:01\n")],
            &[(UUID, "4C4C\n"), ("sys/class/net/veth/address", "0e:01\n")],
            &[(UUID, "4C4C\n"), (ETH, "02:01\n"), (CONTAINER, "lxc")],
        ] {
            assert_eq!(hardware(files), None, "{files:?}");
        }
    }
}
