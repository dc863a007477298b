//! What the kernel asks beside the chain that is imported.

use super::*;

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
        (hook(r#","dev":"eth*""#), &rule),
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

/// What the chain for forward accepts, that for postrouting may drop.
#[test]
fn what_is_asked_later_is_told() {
    let hook = |kind: &str, hook: &str, policy: &str, rule: &str| {
        let others = format!(
            r#",{{"chain":{{"family":"inet","table":"t","name":"fwd","type":"filter","hook":"forward","policy":"drop"}}}},{{"chain":{{"family":"ip","table":"n","name":"c","type":"{kind}","hook":"{hook}","prio":0,"policy":"{policy}"}}}}{rule}"#
        );
        nft_with(&others, &[r#"{"accept":null}"#])
    };
    let rule = r#",{"rule":{"family":"ip","table":"n","chain":"c","handle":4,"expr":[{"drop":null}]}}"#;
    let saved = |chain: &str, rule: &str| {
        format!(
            "*mangle\n:{chain} [0:0]\n{rule}\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"
        )
    };
    let told = |text: &str, chain| imported(text, &Args { chain, ..args() }).1;
    for (text, why) in [
        (hook("filter", "postrouting", "drop", ""), "asked later"),
        (hook("filter", "postrouting", "accept", rule), "asked later"),
        (hook("filter", "egress", "accept", rule), "asked later"),
        (hook("nat", "postrouting", "drop", ""), "asked later"),
        (hook("nat", "postrouting", "accept", rule), "asked later"),
        (saved("POSTROUTING DROP", ""), "in table mangle"),
        (
            saved("POSTROUTING ACCEPT", "-A POSTROUTING -p tcp -j DROP"),
            "in table mangle",
        ),
    ] {
        let of_forward = told(&text, Hook::Forward);
        assert!(
            of_forward.contains(why) && of_forward.contains("1 rule left out"),
            "{text}: {of_forward}"
        );
        assert_eq!(told(&text, Hook::Input), "", "{text}");
    }
    for (policy, rule) in [("drop", ""), ("accept", rule)] {
        let text = hook("nat", "input", policy, rule);
        assert!(told(&text, Hook::Input).contains("asked later"), "{text}");
        assert_eq!(told(&text, Hook::Forward), "", "{text}");
    }
    assert_eq!(
        told(&hook("filter", "postrouting", "accept", ""), Hook::Forward),
        ""
    );
}

/// What is not IP passes the imported rules, and must not pass these chains in silence.
#[test]
fn chains_of_arp_and_bridge_are_told() {
    let told = |family: &str, hook: &str, policy: &str, rule: &str, chain| {
        let others = format!(
            r#",{{"chain":{{"family":"inet","table":"t","name":"fwd","type":"filter","hook":"forward","policy":"drop"}}}},{{"chain":{{"family":"{family}","table":"a","name":"c","type":"filter","hook":"{hook}","prio":0,"policy":"{policy}"}}}}{rule}"#
        );
        imported(
            &nft_with(&others, &[r#"{"accept":null}"#]),
            &Args { chain, ..args() },
        )
        .1
    };
    for (family, hook) in [("arp", "input"), ("bridge", "prerouting"), ("bridge", "forward")] {
        let rule = format!(
            r#",{{"rule":{{"family":"{family}","table":"a","chain":"c","handle":4,"expr":[{{"drop":null}}]}}}}"#
        );
        for (policy, rule) in [("drop", ""), ("accept", rule.as_str())] {
            let told = told(family, hook, policy, rule, Hook::Input);
            let place = format!("chain {family} a c");
            assert!(
                told.contains(&place) && told.contains("1 rule left out"),
                "{place} {hook}: {told}"
            );
        }
        assert_eq!(told(family, hook, "accept", "", Hook::Input), "", "{family}");
    }
    assert!(told("bridge", "postrouting", "drop", "", Hook::Forward).contains("frames of a bridge"));
    assert_eq!(told("bridge", "postrouting", "drop", "", Hook::Input), "");
    assert_eq!(told("arp", "output", "drop", "", Hook::Forward), "");
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
        (listed("", to), &input),
        (listed(&nat("postrouting"), r#"{"masquerade":null}"#), &input),
        (listed(&nat("input"), r#"{"snat":{"addr":"10.0.0.2"}}"#), &forward),
    ] {
        assert_eq!(imported(&text, args).1, "", "{text}");
    }
}

/// What chains without a hook do counts where the kernel comes to them from.
#[test]
fn chains_that_those_of_nat_lead_to_count() {
    let drop = r#"{"drop":null}"#;
    let to = r#"{"dnat":{"addr":"10.0.0.2"}}"#;
    let jump = r#"{"jump":{"target":"sub"}}"#;
    let by_map = r#"{"vmap":{"key":{"payload":{"protocol":"tcp","field":"dport"}},"data":"@m"}}"#;
    let elsewhere = r#"{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"eth0"}}"#;
    let told = |hook: &str, way: &str, does: &str| {
        let others = format!(
            r#",{{"map":{{"family":"ip","table":"n","name":"m","type":"inet_service","map":"verdict","flags":["dynamic"],"elem":[[{{"elem":{{"val":7,"comment":"@m"}}}},{jump}]]}}}}
,{{"chain":{{"family":"ip","table":"n","name":"c","type":"nat","hook":"{hook}","prio":-100,"policy":"accept"}}}}
,{{"chain":{{"family":"ip","table":"n","name":"sub"}}}},{{"chain":{{"family":"ip","table":"n","name":"last"}}}}
,{{"rule":{{"family":"ip","table":"n","chain":"c","handle":4,"expr":[{way}]}}}}
,{{"rule":{{"family":"ip","table":"n","chain":"sub","handle":5,"expr":[{{"goto":{{"target":"last"}}}}]}}}}
,{{"rule":{{"family":"ip","table":"n","chain":"last","handle":6,"expr":[{does}]}}}}"#
        );
        let args = Args {
            dev: Some("eth1".into()),
            ..args()
        };
        imported(&nft_with(&others, &[r#"{"accept":null}"#]), &args).1
    };
    for way in [jump, by_map] {
        assert!(told("prerouting", way, drop).contains("asked earlier"), "{way}");
        assert!(
            told("prerouting", way, to).contains("changes addresses before"),
            "{way}"
        );
        for does in [drop, to] {
            assert_eq!(told("output", way, does), "", "{way} {does}");
            assert_eq!(
                told("prerouting", &format!("{elsewhere},{way}"), does),
                "",
                "{way}"
            );
        }
    }
    let key = r#""key":{"payload":{"protocol":"tcp","field":"dport"}}"#;
    let in_map = format!(r#"{{"vmap":{{{key},"data":{{"set":[[7,{{"accept":null}}],[8,{drop}]]}}}}}}"#);
    assert!(told("prerouting", &in_map, to).contains("asked earlier"));
    assert_eq!(told("output", &in_map, to), "");
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
