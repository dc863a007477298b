//! What can be written, and what is said of what cannot.

use rules::{Action, Verdict};

use crate::frames::read;

fn problem(text: &str) -> String {
    let problems = read(text).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].to_string()
}

#[test]
fn a_file_of_everything() {
    let set = read(
        "# who we are\n\
         define us = 192.0.2.0/24,\n   2001:db8::/32 # both\n\
         define web = 80, 443, 8000-8100\n\
         deny malformed\n\
         allow from @us\n\
         deny from not @us, 198.51.100.7 to 10.0.0.0/8\n\
         deny tcp flags syn,fin/syn,fin\n\
         allow tcp to @us dport @web whole\n\
         allow icmp type echo-request\n\
         rate 10kpps per source/24,56 burst 500 udp sport 53\n\
         deny vlan 100-200 non-ip\n\
         allow arp\n\
         default deny\n",
    )
    .unwrap();
    assert_eq!(set.rules.len(), 9);
    assert_eq!(set.default, Verdict::Deny);
    assert_eq!(set.rules[0].place, (0, 5));
    assert_eq!(set.rules[2].text, "deny from not @us,198.51.100.7 to 10.0.0.0/8");
    let Action::Limit(rate) = set.rules[6].action else {
        panic!()
    };
    assert_eq!(
        (rate.per_second.get(), rate.burst.get(), rate.v4_len, rate.v6_len),
        (10_000, 500, 24, 56)
    );
}

/// A rule that names a set whose definition is wrong is not told of, too: the name is known.
#[test]
fn a_wrong_definition_is_told_once() {
    let text = "define bad = file \"list\"\ndeny from @bad\ndeny to @good\n";
    let read = |name: &str| match name {
        "rules" => Ok(text.to_owned()),
        _ => Err("there is no such file".to_owned()),
    };
    let told: Vec<String> = rules::parse("rules", &read)
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        [
            "rules:1:19: there is no such file",
            "rules:3:9: no set has the name `good`; write `define good = ...` above"
        ]
    );
}

#[test]
fn says_where_and_what_to_do() {
    for (text, told) in [
        (
            "deny form 10.0.0.0/8",
            "rules:1:6: `form` is no condition; did you mean from?",
        ),
        (
            "drop from 10.0.0.0/8",
            "rules:1:1: `drop` begins no rule; write deny",
        ),
        (
            "deny from 10.0.0.1/8",
            "rules:1:11: `10.0.0.1/8` has bits beyond its prefix; write 10.0.0.0/8",
        ),
        ("deny from", "rules:1:10: an address is missing here"),
        // As an editor leaves it for a moment.
        (
            "",
            "rules:1:1: there is no rule and no default; to let everything pass say: default allow",
        ),
        (
            "deny from @bad",
            "rules:1:11: no set has the name `bad`; write `define bad = ...` above",
        ),
        (
            "deny tcp dport 70000",
            "rules:1:16: `70000` is no port: a number up to 65535, or two with a `-` between them",
        ),
        (
            "deny tcp port 80",
            "rules:1:10: `port` is no condition; write sport (source) or dport (destination)",
        ),
        (
            "deny icmp dport 80",
            "rules:1:11: this protocol has no ports; tcp, udp and sctp have",
        ),
        (
            "deny udp flags syn",
            "rules:1:10: only TCP has flags; write `tcp`",
        ),
        (
            "deny udp type 8",
            "rules:1:10: types are those of ICMP; write `icmp type ...` or `icmp6 type ...`",
        ),
        (
            "deny malformed tcp",
            "rules:1:16: `tcp` is no reason; these are: ethernet ip-header ip-length extensions ip-checksum land tiny-fragment tcp-header tcp-flags udp-length icmp-length",
        ),
        (
            "deny tcp malformed",
            "rules:1:10: nothing else that a malformed packet says can be believed: a rule for it has no other condition",
        ),
        (
            "deny tcp tcp",
            "rules:1:10: `tcp` is asked for twice; join the values with commas, or write two rules",
        ),
        (
            "rate 10 per source",
            "rules:1:6: `10` is no rate, such as 500pps, 20kpps or 1Mpps",
        ),
        (
            "rate 0pps per source",
            "rules:1:6: `0pps` is no rate, such as 500pps, 20kpps or 1Mpps",
        ),
        (
            "rate 1pps per source/0",
            "rules:1:15: `0` is no length of a prefix from 1 to 32",
        ),
        (
            "default drop",
            "rules:1:9: `drop` is no verdict; write allow or deny",
        ),
        (
            "default deny\ndefault deny",
            "rules:2:1: `default` stands in line 1 already; keep one of them",
        ),
        (
            "deny \"from",
            "rules:1:6: this quote is not closed; end it with \"",
        ),
        (
            "deny non-ip from 10.0.0.0/8",
            "rules:1:6: what is not IP has no addresses, protocol, ports or fragments; leave one of both out",
        ),
    ] {
        assert_eq!(problem(text), told);
    }
}

/// It would look like a limit, and everything would be within it.
#[test]
fn a_rate_of_what_has_no_address_is_refused() {
    for (text, told) in [
        (
            "rate 100pps per source malformed",
            "rules:1:24: a rate is for each address, and the address of a malformed packet is not believed: this one would limit nothing; write deny or allow",
        ),
        (
            "rate 10pps per source vlan 7 arp",
            "rules:1:30: a rate is for each address, and what is not IP has no address: this one would limit nothing; write deny or allow",
        ),
        (
            "rate 10pps per destination/24 burst 5 non-ip",
            "rules:1:39: a rate is for each address, and what is not IP has no address: this one would limit nothing; write deny or allow",
        ),
        (
            "rate 10pps per source ethertype 0-1500",
            "rules:1:23: a rate is for each address, and what is not IP has no address: this one would limit nothing; write deny or allow",
        ),
    ] {
        assert_eq!(problem(text), told);
    }
}

/// IP is no ether type for rules: they would be met by nothing, and look good.
#[test]
fn the_ether_types_of_ip_are_refused() {
    for (text, told) in [
        (
            "deny ethertype 0x86dd",
            "rules:1:16: `0x86dd` is IPv6, and an ether type is asked only of what is not IP: write ip6",
        ),
        (
            "allow vlan 7 ethertype lldp, 2048",
            "rules:1:30: `2048` is IPv4, and an ether type is asked only of what is not IP: write ip4",
        ),
        (
            "deny ethertype 0x0800-0x0800",
            "rules:1:16: `0x0800-0x0800` is IPv4, and an ether type is asked only of what is not IP: write ip4",
        ),
    ] {
        assert_eq!(problem(text), told);
    }
    assert!(
        read("deny ethertype 0x0800-0x0801, 0-65535").is_ok(),
        "there are others"
    );
}

#[test]
fn files_name_each_other() {
    let read = |name: &str| match name {
        "etc/main" => Ok("include \"lists/more\"\ndeny from @bogons\n".to_owned()),
        "etc/lists/more" => Ok("define bogons = file \"bogons\"\n".to_owned()),
        "etc/lists/bogons" => Ok("10.0.0.0/8 ; private\n# none\n\n192.168.0.0/16\n".to_owned()),
        other => Err(format!("cannot read {other}")),
    };
    let set = rules::parse("etc/main", &read).unwrap();
    assert_eq!(set.rules[0].when.source.as_ref().unwrap().of.len(), 2);
    let itself = rules::parse("a", &|_| Ok("include \"a\"".into())).unwrap_err();
    assert!(itself[0].what.contains("does one include itself?"), "{itself:?}");
    // Read as often as it is asked for, it would be 3^16 files.
    let reads = std::cell::Cell::new(0);
    let thrice = rules::parse("a", &|_| {
        reads.set(reads.get() + 1);
        Ok("include \"a\"\ninclude \"b\"\ninclude \"c\"\n".into())
    });
    assert!(thrice.is_err() && reads.get() == 1024, "{}", reads.get());
}
