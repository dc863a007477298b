//! What each construct becomes, and what is never taken over.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use super::*;

fn args() -> Args {
    Args {
        file: PathBuf::new(),
        chain: Hook::Input,
        table: None,
        dev: None,
    }
}

/// The rules without comments, and what was told.
fn imported(text: &str, args: &Args) -> (Vec<String>, String) {
    let imported = import("t", text, args).unwrap();
    let rule = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    let rules = imported.rules.lines().map(rule).filter(|line| !line.is_empty());
    (rules.collect(), imported.told)
}

fn iptables(rules: &str) -> (Vec<String>, String) {
    let text = format!("*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:sub - [0:0]\n{rules}\nCOMMIT\n");
    let (rules, told) = imported(&text, &args());
    (rules[2..rules.len() - 1].to_vec(), told)
}

/// A chain of an `inet` table with these rules, and other objects.
fn nft_with(others: &str, rules: &[&str]) -> String {
    let mut text = r#"{"nftables":[{"metainfo":{"version":"1"}},{"chain":{"family":"inet","table":"t","name":"in","type":"filter","hook":"input","policy":"drop"}}"#.to_owned();
    text += others;
    for (at, rule) in rules.iter().enumerate() {
        let _ = write!(
            text,
            r#",{{"rule":{{"family":"inet","table":"t","chain":"in","handle":{at},"expr":[{rule}]}}}}"#
        );
    }
    text + "]}"
}

fn nft(rule: &str) -> (Vec<String>, String) {
    let (rules, told) = imported(&nft_with("", &[rule]), &args());
    assert_eq!(
        (rules[0].as_str(), rules.last().map(String::as_str)),
        ("allow non-ip", Some("default deny"))
    );
    (rules[1..rules.len() - 1].to_vec(), told)
}

fn matched(protocol: &str, field: &str, op: &str, right: &str) -> String {
    format!(
        r#"{{"match":{{"op":"{op}","left":{{"payload":{{"protocol":"{protocol}","field":"{field}"}}}},"right":{right}}}}},{{"drop":null}}"#
    )
}

#[test]
fn of_nothing_it_is_said_that_it_is_empty() {
    let said = import("standard input", " \n", &args())
        .err()
        .unwrap()
        .to_string();
    assert!(said.starts_with("standard input is empty"), "{said}");
}

#[test]
fn each_condition_of_iptables() {
    for (rule, ours) in [
        ("-s 10.0.0.0/8 -j DROP", "deny from 10.0.0.0/8"),
        (
            "[1:2] -A INPUT -s 10.0.0.1/255.255.0.0 -j DROP",
            "deny from 10.0.0.0/16",
        ),
        ("! -d 10.0.0.1/32 -j ACCEPT", "allow to not 10.0.0.1"),
        ("-p tcp -m tcp --dport 80:90 -j ACCEPT", "allow tcp dport 80-90"),
        ("-p udp -m udp ! --sport 53 -j DROP", "deny udp sport not 53"),
        (
            "-p tcp -m multiport --dports 80,443,8000:8100 -j DROP",
            "deny tcp dport 80,443,8000-8100",
        ),
        (
            "-m iprange --src-range 10.0.0.1-10.0.0.6 -j REJECT --reject-with icmp-port-unreachable",
            "deny from 10.0.0.1,10.0.0.2/31,10.0.0.4/31,10.0.0.6",
        ),
        ("-p icmp -m icmp --icmp-type 8 -j ACCEPT", "allow icmp type 8"),
        ("-p icmp -m icmp --icmp-type any -j ACCEPT", "allow icmp"),
        (
            "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP",
            "deny tcp flags syn/fin,syn,rst,ack",
        ),
        (
            "-p tcp -m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG NONE -j DROP",
            "deny tcp flags none/fin,syn,rst,psh,ack,urg",
        ),
        (
            "-p 47 -m comment --comment \"a \\\"b\\\" -j ACCEPT\" -j DROP",
            "deny protocol 47",
        ),
        (
            "-p tcp -m hashlimit --hashlimit-above 100/sec --hashlimit-burst 200 --hashlimit-mode srcip --hashlimit-name x --hashlimit-srcmask 24 -j DROP",
            "rate 100pps per source/24,64 burst 200 tcp",
        ),
        // The mask of the other end is printed without being asked for.
        (
            "-m hashlimit --hashlimit-above 9/sec --hashlimit-mode srcip --hashlimit-name x --hashlimit-dstmask 24 -j DROP",
            "rate 9pps per source/32,64 burst 5",
        ),
        (
            "-m hashlimit --hashlimit-above 9/sec --hashlimit-mode dstip --hashlimit-name x --hashlimit-dstmask 16 --hashlimit-srcmask 0 -j DROP",
            "rate 9pps per destination/16,64 burst 5",
        ),
    ] {
        let rule = if rule.starts_with('[') {
            rule.to_owned()
        } else {
            format!("-A INPUT {rule}")
        };
        let (rules, told) = iptables(&rule);
        assert_eq!((rules, told.as_str()), (vec![ours.to_owned()], ""), "{rule}");
    }
    let (rules, _) = iptables("-A INPUT -p udp -m multiport --ports 1,2:5 -j DROP");
    assert_eq!(rules, ["deny udp sport 1,2-5", "deny udp dport 1,2-5"]);
}

#[test]
fn what_iptables_says_and_we_cannot_is_left_out_and_named() {
    for (rule, why) in [
        (
            "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
            "connections are not tracked",
        ),
        ("! -p tcp -j DROP", "no protocols that must not be"),
        (
            "-m limit --limit 5/sec -j ACCEPT",
            "all packets of the rule together",
        ),
        ("-m set --match-set bad src -j DROP", "ipset"),
        ("-i eth0 -j DROP", "--dev"),
        ("-f -j DROP", "put fragments together"),
        ("-p 0 -j ACCEPT", "the protocol 0"),
        ("-p icmp -m icmp --icmp-type 3/1 -j DROP", "codes of ICMP"),
        (
            "-m hashlimit --hashlimit-above 10/sec --hashlimit-mode srcip --hashlimit-name x --hashlimit-srcmask 0 -j DROP",
            "all addresses together",
        ),
        ("-s 10.0.0.0/255.0.255.0 -j DROP", "holes"),
        ("-p tcp -j MARK --set-mark 1", "the target MARK"),
        ("-p tcp -m ttl --ttl-eq 5 -j DROP", "`-m ttl`"),
        ("-p udplite -m multiport --dports 53 -j DROP", "UDP-Lite"),
        ("-p dccp -m multiport --sports 1:9 -j DROP", "DCCP"),
        ("-j nowhere", "there is no chain nowhere"),
        (
            "-p tcp -m hashlimit --hashlimit-upto 100/sec --hashlimit-mode srcip --hashlimit-name x -j ACCEPT",
            "hashlimit-upto",
        ),
        (
            "-m hashlimit --hashlimit-above 10/min --hashlimit-mode srcip --hashlimit-name x -j DROP",
            "no whole number",
        ),
        (
            "-m hashlimit --hashlimit-above 10/sec --hashlimit-mode srcip --hashlimit-name x -p tcp -j DROP",
            "behind a rate",
        ),
        ("-p tcp -m tcp --dport 99999999999999999999 -j DROP", "the ports"),
        ("--dport", "without a value"),
        ("-s fe80::/10 -j DROP", "other family"),
    ] {
        let text = format!(
            "# Generated by iptables-save v1\n*filter\n:INPUT ACCEPT [0:0]\n-A INPUT {rule}\nCOMMIT\n"
        );
        let (rules, told) = imported(&text, &args());
        assert_eq!(rules, ["allow non-ip", "allow ip6", "default allow"], "{rule}");
        assert!(
            told.contains(why) && told.contains("line 4") && told.contains("1 rule left out"),
            "{rule}: {told}"
        );
    }
}

#[test]
fn a_skipped_accept_before_a_drop_is_said() {
    let (rules, told) = iptables("-A INPUT -m state --state ESTABLISHED -j ACCEPT\n-A INPUT -p tcp -j DROP");
    assert_eq!(rules, ["deny tcp"]);
    assert!(told.contains("may be DENIED"), "{told}");
    let (_, told) = iptables("-A INPUT -m state --state INVALID -j DROP");
    assert!(told.contains("may be ALLOWED"), "{told}");
}

#[test]
fn chains_are_written_out_where_that_is_the_same() {
    let (rules, told) = iptables(
        "-A INPUT -p tcp -j sub\n-A INPUT -s 11.0.0.1 -g sub\n-A INPUT -p udp -j DROP\n-A sub -s 10.0.0.0/8 -j DROP\n-A sub -p tcp --dport 22 -j ACCEPT\n-A sub -j RETURN\n-A sub -j DROP",
    );
    let expected = [
        "deny tcp from 10.0.0.0/8",
        "allow tcp dport 22",
        "allow tcp from 11.0.0.1 dport 22",
        "allow from 11.0.0.1",
        "deny udp",
    ];
    assert_eq!((rules, told.as_str()), (expected.map(str::to_owned).into(), ""));
    let (rules, told) = iptables("-A INPUT -j sub\n-A sub -p tcp -j RETURN\n-A sub -j DROP");
    assert!(
        rules.is_empty() && told.contains("returns on a condition"),
        "{told}"
    );
    let (rules, told) = iptables("-A INPUT -j sub\n-A sub -j sub");
    assert!(rules.is_empty() && told.contains("jumps to itself"), "{told}");
    let mut doubling = String::from("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j c0\n");
    for at in 0..15 {
        let _ = writeln!(
            doubling,
            ":c{at} - [0:0]\n{}",
            format!("-A c{at} -j c{}\n", at + 1).repeat(6)
        );
    }
    doubling += ":c15 - [0:0]\n-A c15 -s 10.0.0.1 -j DROP\n";
    let error = format!("{:#}", import("t", &doubling, &args()).err().unwrap());
    assert!(error.contains("more than"), "{error}");
}

#[test]
fn both_families_become_one_list() {
    let text = "# Generated by iptables-save v1\n*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -j ACCEPT\nCOMMIT\n# Generated by ip6tables-save v1\n*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -s fe80::/10 -j DROP\nCOMMIT\n";
    let (rules, told) = imported(text, &args());
    let expected = [
        "allow non-ip",
        "allow ip4 tcp",
        "deny ip4",
        "deny from fe80::/10",
        "allow ip6",
        "default allow",
    ];
    assert_eq!((rules, told.as_str()), (expected.map(str::to_owned).into(), ""));
}

#[test]
fn each_condition_of_nft() {
    for (rule, ours) in [
        (matched("ip", "saddr", "==", r#""10.0.0.1""#), "deny from 10.0.0.1"),
        (matched("ip", "saddr", "!=", r#"{"prefix":{"addr":"10.0.0.0","len":8}}"#), "deny ip4 from not 10.0.0.0/8"),
        (matched("ip6", "daddr", "==", r#"{"set":["::1",{"range":["fe80::","fe80::3"]}]}"#), "deny to ::1,fe80::/126"),
        (matched("tcp", "dport", "!=", r#"{"set":[22,{"range":[80,90]}]}"#), "deny tcp dport not 22,80-90"),
        (matched("tcp", "flags", "==", r#""syn""#), "deny tcp flags syn/fin,syn,rst,psh,ack,urg,ece,cwr"),
        (matched("tcp", "flags", "!", r#"["syn","ack"]"#), "deny tcp flags none/syn,ack"),
        (matched("icmp", "type", "==", r#"{"set":["echo-request",13]}"#), "deny ip4 icmp type 8,13"),
        (matched("icmpv6", "type", "==", r#""nd-neighbor-solicit""#), "deny ip6 icmp6 type 135"),
        (matched("ip", "protocol", "==", r#""gre""#), "deny ip4 protocol 47"),
        (r#"{"match":{"op":"==","left":{"&":[{"payload":{"protocol":"tcp","field":"flags"}},{"|":["syn","ack"]}]},"right":"syn"}},{"counter":null},{"accept":null}"#.into(), "allow tcp flags syn/syn,ack"),
        (r#"{"match":{"op":"==","left":{"meta":{"key":"l4proto"}},"right":{"set":["tcp","udp"]}}},{"match":{"op":"==","left":{"payload":{"protocol":"th","field":"dport"}},"right":53}},{"reject":null}"#.into(), "deny protocol 6,17 dport 53"),
        (r#"{"match":{"op":"==","left":{"meta":{"key":"nfproto"}},"right":"ipv6"}},{"log":{"prefix":"x"}},{"return":null}"#.into(), "deny ip6"),
        (r#"{"meter":{"name":"m","size":9,"key":{"&":[{"payload":{"protocol":"ip","field":"saddr"}},"255.255.255.0"]},"stmt":{"limit":{"rate":10,"burst":5,"per":"second","inv":true}}}},{"drop":null}"#.into(), "rate 10pps per source/24,64 burst 5 ip4"),
    ] {
        let (rules, told) = nft(&rule);
        assert_eq!((rules, told.as_str()), (vec![ours.to_owned()], ""), "{rule}");
    }
    let (rules, _) = nft(&matched("tcp", "flags", "in", r#"["syn","ack"]"#));
    assert_eq!(rules, ["deny tcp flags syn/syn", "deny tcp flags ack/ack"]);
    let (rules, _) = nft(
        r#"{"vmap":{"key":{"payload":{"protocol":"tcp","field":"dport"}},"data":{"set":[[22,{"accept":null}],[{"range":[1,9]},{"drop":null}]]}}}"#,
    );
    assert_eq!(rules, ["allow tcp dport 22", "deny tcp dport 1-9"]);
}

#[test]
fn what_nft_says_and_we_cannot_is_left_out_and_named() {
    for (rule, why) in [
        (r#"{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":["established"]}},{"accept":null}"#.to_owned(), "connections are not tracked"),
        (r#"{"limit":{"rate":10,"burst":5,"per":"second"}},{"accept":null}"#.into(), "all packets of the rule together"),
        (r#"{"xt":{"type":"match","name":"hashlimit"}},{"drop":null}"#.into(), "iptables-save"),
        (r#"{"match":{"op":"==","left":{"meta":{"key":"mark"}},"right":1}},{"drop":null}"#.into(), "meta mark"),
        (r#"{"mangle":{}},{"accept":null}"#.into(), "`mangle` is not in our language"),
        (r#"{"mangle":{}}"#.into(), "`mangle` is not in our language"),
        (r#"{"drop":null,"accept":null}"#.into(), "not known here"),
        (matched("ip", "saddr", "==", r#""@none""#), "no set none"),
        (matched("ip", "saddr", "==", r#""example.org""#), "the address example.org"),
        (matched("ip", "saddr", "<", r#""10.0.0.1""#), "a comparison"),
        (matched("ip", "ttl", "==", "5"), "`ip ttl`"),
        (matched("tcp", "dport", "==", "99999999999999999999999"), "not known here"),
        (matched("tcp", "dport", "==", "65536"), "not known here"),
        (matched("th", "dport", "==", "53"), "`th` is for protocols"),
        (matched("tcp", "flags", "!=", r#""syn""#), "must not be so"),
        (matched("ip6", "nexthdr", "==", r#""tcp""#), "first header only"),
        (matched("ip", "saddr", "==", r#"{"elem":{"val":"10.0.0.1","timeout":5}}"#), "come and go"),
        (r#"{"meter":{"name":"m","size":9,"key":{"payload":{"protocol":"ip","field":"saddr"}},"stmt":{"limit":{"rate":10,"burst":5,"per":"second"}}}},{"accept":null}"#.into(), "not `over`"),
    ] {
        let (rules, told) = nft(&rule);
        assert!(rules.is_empty(), "{rule}: {rules:?}");
        assert!(told.contains(why) && told.contains("handle 0"), "{rule}: {told}");
    }
}

#[test]
fn sets_with_names() {
    let elements: Vec<_> = (0..20).map(|at| format!("\"10.0.{at}.1\"")).collect();
    let set = |flags: &str| {
        format!(
            r#",{{"set":{{"family":"inet","table":"t","name":"b/ad","type":"ipv4_addr","flags":{flags},"elem":[{}]}}}}"#,
            elements.join(",")
        )
    };
    let rule = matched("ip", "saddr", "==", r#""@b/ad""#);
    let (rules, told) = imported(&nft_with(&set(r#"["interval"]"#), &[&rule]), &args());
    assert!(
        rules[0].starts_with("define bad = 10.0.0.1, 10.0.1.1,") && rules.contains(&"deny from @bad".into()),
        "{rules:?}"
    );
    assert_eq!(told, "");
    for flags in [r#"["timeout"]"#, r#""timeout""#, r#"["interval","dynamic"]"#] {
        let (_, told) = imported(&nft_with(&set(flags), &[&rule]), &args());
        assert!(told.contains("come and go"), "{flags}: {told}");
    }
    let writes = r#"{"set":{"op":"add","elem":{"payload":{"protocol":"ip","field":"saddr"}},"set":"@b/ad"}}"#;
    let (_, told) = imported(&nft_with(&set("[]"), &[&rule, writes]), &args());
    assert!(told.contains("come and go"), "{told}");
}

#[test]
fn names_of_sets_are_free_ones() {
    let elements = |first: u8| {
        let all: Vec<_> = (0..9).map(|at| format!("\"10.{first}.{at}.1\"")).collect();
        all.join(",")
    };
    let named = |name: &str, first| {
        format!(
            r#",{{"set":{{"family":"inet","table":"t","name":"{name}","type":"ipv4_addr","elem":[{}]}}}}"#,
            elements(first)
        )
    };
    let set2 = matched("ip", "saddr", "==", r#""@set2""#);
    let a = matched("ip", "saddr", "==", r#""@a""#);
    let same_but_for_a_sign = matched("ip", "saddr", "==", r#""@/a""#);
    let taken = matched("ip", "saddr", "==", r#""@aset3""#);
    let none = |first| {
        matched(
            "ip",
            "saddr",
            "==",
            &format!(r#"{{"set":[{}]}}"#, elements(first)),
        )
    };
    let (rules, told) = imported(&nft_with(&named("set2", 1), &[&set2, &none(2)]), &args());
    let denied_from = |rules: &[String]| -> Vec<String> {
        let sets = rules.iter().filter_map(|rule| rule.strip_prefix("deny from "));
        sets.map(str::to_owned).collect()
    };
    assert_eq!(
        (denied_from(&rules), told.as_str()),
        (vec!["@set2".into(), "@set3".into()], "")
    );
    let sets = named("a", 3) + &named("aset3", 4) + &named("/a", 5);
    let (rules, _) = imported(&nft_with(&sets, &[&a, &taken, &same_but_for_a_sign]), &args());
    assert_eq!(denied_from(&rules), ["@a", "@aset3", "@aset4"]);
    // A rule's own name may be one that was made up for an earlier set.
    let (rules, _) = imported(
        &nft_with(
            &named("set1", 6),
            &[&none(7), &matched("ip", "saddr", "==", r#""@set1""#)],
        ),
        &args(),
    );
    assert_eq!(denied_from(&rules).len(), 2, "{rules:?}");
}

#[test]
fn what_is_asked_earlier_is_told() {
    let drops = matched("ip", "saddr", "==", r#""10.0.0.1""#);
    let earlier = |chain: &str, rules: &str| {
        let chain = format!(r#",{{"chain":{{"family":"netdev","table":"n","name":"early",{chain}}}}}"#);
        let named = Args {
            dev: Some("eth1".into()),
            ..args()
        };
        imported(&nft_with(&(chain + rules), &[r#"{"accept":null}"#]), &named).1
    };
    let hook = |more: &str| format!(r#""type":"filter","hook":"ingress","prio":0{more}"#);
    let rule = format!(
        r#",{{"rule":{{"family":"netdev","table":"n","chain":"early","handle":1,"expr":[{drops}]}}}}"#
    );
    for (chain, rules) in [
        (hook(""), rule.as_str()),
        (hook(r#","dev":"eth1""#), &rule),
        (hook(r#","dev":["eth0","eth1"]"#), &rule),
        (hook(r#","policy":"drop""#), ""),
    ] {
        let told = earlier(&chain, rules);
        assert!(
            told.contains("chain netdev n early") && told.contains("asked earlier"),
            "{chain}: {told}"
        );
    }
    for (chain, rules) in [
        (hook(r#","policy":"accept""#), ""),
        (hook(r#","dev":"eth0""#), &rule),
    ] {
        assert_eq!(earlier(&chain, rules), "", "{chain}");
    }
}

#[test]
fn what_translates_addresses_is_told() {
    let of = |chain, dev: Option<&str>| Args {
        chain,
        dev: dev.map(str::to_owned),
        ..args()
    };
    let (input, forward) = (of(Hook::Input, None), of(Hook::Forward, None));
    let on_wire = of(Hook::Input, Some("eth1"));
    let saved = |rule: &str| {
        format!(
            "*nat\n:PREROUTING ACCEPT [0:0]\n:sub - [0:0]\n{rule}\nCOMMIT\n*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -j ACCEPT\n-A FORWARD -j ACCEPT\nCOMMIT\n"
        )
    };
    let listed = |hook: &str, rule: &str| {
        let others = format!(
            r#",{{"chain":{{"family":"inet","table":"t","name":"fwd","type":"filter","hook":"forward","policy":"drop"}}}},{{"chain":{{"family":"ip","table":"n","name":"c"{hook}}}}},{{"rule":{{"family":"ip","table":"n","chain":"c","handle":4,"expr":[{rule}]}}}}"#
        );
        nft_with(&others, &[r#"{"accept":null}"#])
    };
    let nat = |hook: &str| format!(r#","type":"nat","hook":"{hook}","prio":-100,"policy":"accept""#);
    let to = r#"{"dnat":{"addr":"10.0.0.2"}}"#;
    let name = r#"{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"eth0"}}"#;
    let before = "changes addresses before";
    let of_answers = "changes addresses of answers before";
    for (text, args, why) in [
        (
            saved("-A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.0.0.2"),
            &input,
            before,
        ),
        (
            saved("[1:2] -A sub -p tcp -j REDIRECT --to-ports 8080"),
            &input,
            before,
        ),
        (
            saved("-A PREROUTING -d 10.1.0.0/16 -j NETMAP --to 10.2.0.0/16"),
            &forward,
            before,
        ),
        (
            saved("-A PREROUTING ! -i eth0 -j DNAT --to-destination 10.0.0.2"),
            &on_wire,
            before,
        ),
        (
            saved("-A POSTROUTING -o eth0 -j MASQUERADE"),
            &forward,
            of_answers,
        ),
        (listed(&nat("prerouting"), to), &input, before),
        (
            listed(&nat("prerouting"), r#"{"redirect":{"port":8080}}"#),
            &forward,
            before,
        ),
        (listed("", to), &input, before),
        (
            listed(&nat("prerouting"), r#"{"xt":{"type":"target","name":"NETMAP"}}"#),
            &input,
            before,
        ),
        (
            listed(&nat("postrouting"), r#"{"masquerade":null}"#),
            &forward,
            of_answers,
        ),
        (
            listed(&nat("prerouting"), r#"{"drop":null}"#),
            &input,
            "asked earlier",
        ),
        (
            listed(&nat("prerouting").replace("accept", "drop"), ""),
            &input,
            "asked earlier",
        ),
    ] {
        let (_, told) = imported(&text, args);
        assert!(
            told.contains(why) && told.contains("1 rule left out"),
            "{text}: {told}"
        );
    }
    for (text, args) in [
        (saved("-A PREROUTING -p tcp -j sub"), &input),
        (
            saved("-A PREROUTING -i eth0 -j DNAT --to-destination 10.0.0.2"),
            &on_wire,
        ),
        (saved("-A OUTPUT -p tcp -j REDIRECT --to-ports 8080"), &input),
        (saved("-A POSTROUTING -o eth0 -j MASQUERADE"), &input),
        (saved("-A INPUT -j SNAT --to-source 10.0.0.2"), &forward),
        (listed(&nat("prerouting"), r#"{"accept":null}"#), &input),
        (listed(&nat("prerouting"), &format!("{name},{to}")), &on_wire),
        (listed(&nat("output"), to), &input),
        (listed(&nat("postrouting"), r#"{"masquerade":null}"#), &input),
        (listed(&nat("input"), r#"{"snat":{"addr":"10.0.0.2"}}"#), &forward),
    ] {
        assert_eq!(imported(&text, args).1, "", "{text}");
    }
}

#[test]
fn policies_of_other_tables_of_iptables_are_told() {
    let told = |table: &str, chain: &str| {
        let text = format!("*{table}\n:{chain}\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n");
        imported(&text, &args()).1
    };
    for (table, chain) in [
        ("raw", "PREROUTING DROP [0:0]"),
        ("mangle", "INPUT DROP [0:0]"),
        ("nat", "PREROUTING DROP [0:0]"),
    ] {
        let told = told(table, chain);
        assert!(
            told.contains("line 2") && told.contains(&format!("table {table}")),
            "{told}"
        );
    }
    for (table, chain) in [
        ("raw", "PREROUTING ACCEPT [0:0]"),
        ("mangle", "POSTROUTING DROP [0:0]"),
        ("nat", "OUTPUT DROP [0:0]"),
    ] {
        assert_eq!(told(table, chain), "", "{table} {chain}");
    }
}

#[test]
fn a_dormant_table_is_not_in_force() {
    let rule = matched("ip", "saddr", "==", r#""10.0.0.1""#);
    let table = |flags: &str| {
        let other = format!(
            r#",{{"table":{{"family":"ip","name":"u","flags":{flags}}}}},{{"chain":{{"family":"ip","table":"u","name":"in","type":"filter","hook":"input","policy":"drop"}}}}"#
        );
        nft_with(&other, &[&rule])
    };
    for flags in [
        r#""dormant""#,
        r#"["dormant"]"#,
        r#"["owner","dormant"]"#,
        r#""inet""#,
    ] {
        let (rules, told) = imported(&table(flags), &args());
        assert_eq!(
            rules,
            ["allow non-ip", "deny from 10.0.0.1", "default deny"],
            "{flags}"
        );
        assert!(
            told.contains("table ip u: left out") && told.contains("dormant"),
            "{told}"
        );
    }
    assert!(import("t", &table(r#""owner""#), &args()).is_err(), "both judge");
}

#[test]
fn rates_by_the_time_that_they_are_for() {
    let rate = |number: u64, per: &str| {
        nft(&format!(
            r#"{{"meter":{{"name":"m","size":9,"key":{{"payload":{{"protocol":"ip","field":"saddr"}}}},"stmt":{{"limit":{{"rate":{number},"burst":5,"per":"{per}","inv":true}}}}}}}},{{"drop":null}}"#
        ))
    };
    for (number, per) in [
        (2, "second"),
        (120, "minute"),
        (7200, "hour"),
        (172_800, "day"),
        (1_209_600, "week"),
    ] {
        let (rules, told) = rate(number, per);
        assert_eq!(
            rules.join("; "),
            "rate 2pps per source/32,64 burst 5 ip4",
            "{per}: {told}"
        );
    }
    let (rules, told) = rate(86400, "fortnight");
    assert!(
        rules.is_empty() && told.contains("a time that is not known"),
        "{told}"
    );
}

#[test]
fn two_chains_that_judge_the_same_packets_are_not_mixed() {
    let other = r#",{"chain":{"family":"ip","table":"u","name":"in","type":"filter","hook":"input","policy":"drop"}}"#;
    let text = nft_with(other, &[r#"{"accept":null}"#]);
    let error = import("t", &text, &args()).err().unwrap();
    assert!(format!("{error:#}").contains("--table"), "{error:#}");
    let one = Args {
        table: Some("u".into()),
        ..args()
    };
    assert_eq!(
        imported(&text, &one).0,
        ["allow non-ip", "allow ip6", "default deny"]
    );
}

#[test]
fn interfaces_go_by_the_one_that_is_named() {
    let named = Args {
        dev: Some("eth1".into()),
        ..args()
    };
    let text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -i eth1 -p tcp -j DROP\n-A INPUT -i eth+ -p udp -j DROP\n-A INPUT ! -i eth1 -j DROP\nCOMMIT\n";
    let (rules, told) = imported(text, &named);
    assert_eq!(
        (rules[2..].join("; "), told.as_str()),
        ("deny tcp; deny udp; default allow".into(), "")
    );
}

#[test]
fn an_element_of_a_map_that_no_packet_meets_takes_no_other_with_it() {
    let map = |key: &str, elements: &str| {
        format!(r#"{{"vmap":{{"key":{{"meta":{{"key":"{key}"}}}},"data":{{"set":[{elements}]}}}}}}"#)
    };
    let by_name = map(
        "iifname",
        r#"["lo",{"accept":null}],["lan0",{"queue":null}],["wan*",{"drop":null}]"#,
    );
    let named = Args {
        dev: Some("wan0".into()),
        ..args()
    };
    let (rules, told) = imported(&nft_with("", &[&by_name]), &named);
    assert_eq!(
        (rules.join("; "), told.as_str()),
        ("allow non-ip; deny; default deny".into(), "")
    );
    let (rules, told) = nft(&by_name);
    assert!(rules.is_empty() && told.contains("--dev"), "{rules:?}: {told}");
    let by_family = map("nfproto", r#"["ipv6",{"drop":null}],["ipv4",{"accept":null}]"#);
    let text = nft_with("", &[&by_family]).replace(r#""inet""#, r#""ip""#);
    let (rules, told) = imported(&text, &args());
    assert_eq!(
        (rules.join("; "), told.as_str()),
        ("allow non-ip; allow ip6; allow ip4; default deny".into(), "")
    );
}

#[test]
fn hostile_input_is_one_error_or_a_comment() {
    for text in [
        "",
        "hello",
        "{",
        "{}",
        r#"{"nftables":5}"#,
        r#"{"nftables":[{"rule":5}]}"#,
        "*nat\nx",
        "-A INPUT -j DROP",
    ] {
        assert!(import("t", text, &args()).is_err(), "{text}");
    }
    let deep = format!("{{\"nftables\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(import("t", &deep, &args()).is_err());
    // Nothing that others wrote becomes a rule.
    let sly = nft_with(
        "",
        &[
            r#"{"match":{"op":"==","left":{"meta":{"key":"mark\nallow\r\u2028"}},"right":"\nallow"}},{"drop":null}"#,
        ],
    );
    let sly = sly.replace(r#""expr""#, r#""comment":"\nallow tcp\u0085allow","expr""#);
    assert_eq!(imported(&sly, &args()).0, ["allow non-ip", "default deny"]);
    let odd = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m comment --comment \"a\u{2028}b\\\" -j ACCEPT\n-A\n-A INPUT \"\nCOMMIT\n";
    assert_eq!(imported(odd, &args()).0.len(), 3);
}
