//! Finds the interfaces of default routes in `/proc/net`.

/// Returns the interfaces of default routes in `/proc/net/route`: destination and mask zero.
pub(super) fn of_ipv4(table: &str) -> Vec<&str> {
    let rows = table.lines().skip(1).map(|line| line.split_whitespace());
    rows.filter_map(|row| {
        let words: Vec<&str> = row.collect();
        match words.as_slice() {
            [name, "00000000", _, _, _, _, _, "00000000", ..] => Some(*name),
            _ => None,
        }
    })
    .collect()
}

/// Returns the interfaces of default routes in `/proc/net/ipv6_route`, without the kernel's own on
/// the loopback.
pub(super) fn of_ipv6(table: &str) -> Vec<&str> {
    const ANY: &str = "00000000000000000000000000000000";
    let rows = table.lines().map(|line| line.split_whitespace());
    rows.filter_map(|row| {
        let words: Vec<&str> = row.collect();
        match words.as_slice() {
            [ANY, "00", .., name] if *name != "lo" => Some(*name),
            _ => None,
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_are_found_by_destination_and_mask() {
        let ipv4 = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                    eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                    eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        assert_eq!(of_ipv4(ipv4), ["eth0"]);
        let any = "00000000000000000000000000000000";
        let ipv6 = format!(
            "{any} 00 {any} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth2\n\
             fe800000000000000000000000000000 40 {any} 00 {any} 00000100 00000001 00000000 00000001 eth1\n\
             {any} 00 {any} 00 {any} ffffffff 00000001 00000000 00200200 lo\n"
        );
        assert_eq!(of_ipv6(&ipv6), ["eth2"]);
    }
}
