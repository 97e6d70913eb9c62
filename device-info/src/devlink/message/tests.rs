use super::*;
use proptest::prelude::*;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(4 + value.len())
        .unwrap()
        .to_ne_bytes()
        .to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(HEADER + payload.len())
        .unwrap()
        .to_ne_bytes()
        .to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

fn handle() -> DevlinkHandle {
    DevlinkHandle {
        bus: "netdevsim".to_owned(),
        name: "netdevsim10".to_owned(),
    }
}

/// `netdevsim/netdevsim10/129: netdev eth3 flavour pcivf controller 0 pfnum 0 vfnum 1`
fn vf_port() -> Vec<u8> {
    [
        vec![devlink::CMD_PORT_GET, 1, 0, 0],
        attribute(devlink::BUS_NAME, b"netdevsim\0"),
        attribute(devlink::DEV_NAME, b"netdevsim10\0"),
        attribute(devlink::PORT_INDEX, &129_u32.to_ne_bytes()),
        attribute(devlink::PORT_NETDEV_NAME, b"eth3\0"),
        attribute(devlink::PORT_FLAVOUR, &4_u16.to_ne_bytes()),
        attribute(devlink::PORT_CONTROLLER_NUMBER, &0_u32.to_ne_bytes()),
        attribute(devlink::PORT_PCI_PF_NUMBER, &0_u16.to_ne_bytes()),
        attribute(devlink::PORT_PCI_VF_NUMBER, &1_u16.to_ne_bytes()),
        attribute(devlink::PORT_EXTERNAL, &[0]),
    ]
    .concat()
}

#[test]
fn a_representors_port_is_read_with_the_numbers_of_its_function() {
    let mut replies = Vec::new();
    let datagram = [
        message(30, 7, &vf_port()),
        message(NLMSG_DONE, 7, &0_i32.to_ne_bytes()),
    ]
    .concat();
    assert!(collect(&datagram, 7, &Request::ports(&handle()), &mut replies).unwrap());
    let port = replies.first().and_then(Reply::port).unwrap();
    assert!(replies.first().unwrap().is_of(&handle()));
    assert_eq!(
        (port.flavour, port.pf, port.vf),
        (PortFlavour::PciVf, Some(0), Some(1))
    );
    assert_eq!(port.netdev.as_deref(), Some("eth3"));
    assert!(!port.external);
}

#[test]
fn a_refusal_names_the_request_and_the_kernels_reason() {
    let datagram = message(NLMSG_ERROR, 7, &(-95_i32).to_ne_bytes());
    let error = collect(&datagram, 7, &Request::eswitch(&handle()), &mut Vec::new()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the switch mode of netdevsim/netdevsim10"),
        "{text}"
    );
    assert!(text.contains("not supported"), "{text}");
}

#[test]
fn answers_to_an_earlier_request_are_skipped() {
    let mut replies = Vec::new();
    let datagram = [
        message(30, 6, &vf_port()),
        message(NLMSG_ERROR, 6, &(-19_i32).to_ne_bytes()),
    ]
    .concat();
    assert!(!collect(&datagram, 7, &Request::ports(&handle()), &mut replies).unwrap());
    assert!(replies.is_empty());
}

proptest! {
    #[test]
    fn a_truncated_answer_never_panics(cut in 0_usize..400, noise in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut datagram = [message(30, 7, &vf_port()), message(NLMSG_DONE, 7, &0_i32.to_ne_bytes())].concat();
        datagram.truncate(cut);
        datagram.extend(noise);
        let mut replies = Vec::new();
        let _ = collect(&datagram, 7, &Request::ports(&handle()), &mut replies);
        for reply in replies {
            let _ = (reply.port(), reply.family_id(), reply.eswitch_mode(), reply.is_of(&handle()));
        }
    }
}
