//! Prints what the hot functions cost, in nanoseconds per packet, by size and number of flows.
//!
//! Each figure is the best of several rounds over a working set that fits the caches, as a burst in a
//! driver's ring would.

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Instant;

use wire::{BurstStamp, Class, TPID_CUSTOMER, TPID_SERVICE, Template, TemplateSpec, Verify, VlanTag};

const BUFFERS: usize = 64;
const ROUNDS: usize = 600;
const RUN: u8 = 0x5A;

fn spec(
    ipv6: bool,
    vlans: usize,
    frame_size: usize,
    flows: u32,
) -> Result<TemplateSpec, std::net::AddrParseError> {
    let (src, dst) = if ipv6 {
        ("[2001:db8::1]:4000", "[2001:db8::2]:5000")
    } else {
        ("10.0.0.1:4000", "10.0.0.2:5000")
    };
    let (src, dst): (SocketAddr, SocketAddr) = (src.parse()?, dst.parse()?);
    let tags = [
        VlanTag {
            tpid: TPID_SERVICE,
            id: 7,
            pcp: 0,
        },
        VlanTag {
            tpid: TPID_CUSTOMER,
            id: 8,
            pcp: 3,
        },
    ];
    Ok(TemplateSpec {
        vlans: tags[2 - vlans..].to_vec(),
        src,
        dst,
        run: RUN,
        lane: 3,
        flows,
        dst_ports: 5000..=5000,
        ..TemplateSpec::plain(frame_size)
    })
}

/// Bytes from one buffer to the next: an odd number of cache lines, so that the buffers spread over all sets
/// of the cache.
fn stride(len: usize) -> usize {
    (len.div_ceil(64).max(1) | 1) * 64
}

/// Best nanoseconds per packet of `ROUNDS` rounds of `bursts` bursts.
fn cost_ns(bursts: usize, mut burst: impl FnMut(u64)) -> f64 {
    let mut best_ns = f64::MAX;
    for round in 0..ROUNDS {
        let start = Instant::now();
        for number in 0..bursts {
            burst(((round * bursts + number) * BUFFERS) as u64);
        }
        best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / (bursts * BUFFERS) as f64);
    }
    best_ns
}

fn measure(name: &str, spec: &TemplateSpec) -> Result<(), wire::TemplateError> {
    let template = Template::new(spec)?;
    let len = template.frame_len();
    let bursts = if len > 200 { 60 } else { 300 };
    let stride = stride(len);
    let mut memory = vec![0_u8; BUFFERS * stride + 64];
    // Frames begin at a cache line, as drivers lay them out.
    let aligned = memory.as_ptr().align_offset(64);
    let rooms = &mut memory[aligned..];
    let mut flow = 0;
    let write_ns = cost_ns(bursts, |first| {
        let stamp = BurstStamp::new(black_box(first * 100), 0);
        for (room, sequence) in rooms.chunks_exact_mut(stride).zip(first..) {
            let of_many = (spec.flows > 1).then(|| template.flow(flow));
            template.write(room, &stamp, sequence, of_many.as_ref());
            flow += 1;
            if flow == spec.flows {
                flow = 0;
            }
        }
        black_box(&mut *rooms);
    });
    let mut accepted = 0_u64;
    let mut classified_ns = [0.0; 3];
    for (cost, verify) in classified_ns
        .iter_mut()
        .zip([Verify::None, Verify::Checksum, Verify::Payload])
    {
        *cost = cost_ns(bursts, |_| {
            for room in black_box(&*rooms).chunks_exact(stride) {
                if let Class::Probe(probe) = wire::classify(&room[..len], RUN, verify) {
                    accepted += 1 + (probe.sequence & 1) + (probe.time_ns & 1) + u64::from(probe.lane & 1);
                }
            }
        });
    }
    let reflect_ns = cost_ns(bursts, |_| {
        for room in rooms.chunks_exact_mut(stride) {
            accepted += u64::from(wire::reflect(&mut room[..len], false).is_ok());
        }
        black_box(&mut *rooms);
    });
    let peek_ns = cost_ns(bursts, |_| {
        for room in black_box(&*rooms).chunks_exact(stride) {
            accepted += wire::peek(&room[..len]).map_or(0, |probe| probe.sequence);
        }
    });
    let parse_ns = cost_ns(bursts, |_| {
        for room in black_box(&*rooms).chunks_exact(stride) {
            if let wire::Parsed::Ip(ip) = wire::parse(&room[..len]) {
                accepted += ip.end as u64;
            }
        }
    });
    black_box(accepted);
    let [none, checksum, payload] = classified_ns;
    println!(
        "{name:<12} {:>6} {:>9} {write_ns:>7.2} {none:>7.2} {checksum:>9.2} {payload:>9.2} {reflect_ns:>8.2} {peek_ns:>6.2} {parse_ns:>6.2}",
        spec.frame_size, spec.flows
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("ns per packet                             classify");
    println!("headers        size     flows   write    none  checksum   payload  reflect   peek  parse");
    for flows in [1, 1_000, 1_000_000] {
        measure("v4", &spec(false, 0, 64, flows)?)?;
    }
    for size in [65, 128, 256, 512, 1518, 9018] {
        measure("v4", &spec(false, 0, size, 1)?)?;
    }
    measure("v4", &spec(false, 0, 1518, 1_000_000)?)?;
    measure("v4 vlan", &spec(false, 1, 68, 1)?)?;
    measure("v4 qinq", &spec(false, 2, 72, 1)?)?;
    measure("v6", &spec(true, 0, 84, 1)?)?;
    measure("v6", &spec(true, 0, 84, 1_000_000)?)?;
    measure("v6 qinq", &spec(true, 2, 92, 1)?)?;
    Ok(())
}
