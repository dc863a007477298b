//! Sets of addresses, and what they are called.

use super::*;

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

/// `iifname @wan` asks for the names in it, not for an interface of that name.
#[test]
fn sets_of_interfaces() {
    let set = r#",{"set":{"family":"inet","table":"t","name":"wan","type":"ifname","elem":["eth0","ppp*"]}}"#;
    let rules = |dev: Option<&str>, op: &str, right: &str| {
        let rule = format!(
            r#"{{"match":{{"op":"{op}","left":{{"meta":{{"key":"iifname"}}}},"right":{right}}}}},{{"drop":null}}"#
        );
        let named = Args {
            dev: dev.map(str::to_owned),
            ..args()
        };
        let (rules, told) = imported(&nft_with(set, &[&rule, r#"{"accept":null}"#]), &named);
        (rules.contains(&"deny".into()), told)
    };
    for right in [r#""@wan""#, r#"{"set":["eth0","ppp*"]}"#] {
        for (dev, is_among) in [("eth0", true), ("ppp7", true), ("eth1", false)] {
            let same = |is_met| (is_met, String::new());
            assert_eq!(rules(Some(dev), "==", right), same(is_among), "{right} {dev}");
            assert_eq!(rules(Some(dev), "!=", right), same(!is_among), "{right} {dev}");
        }
        let (is_met, told) = rules(None, "!=", right);
        assert!(!is_met && told.contains("--dev"), "{told}");
    }
    let (is_met, told) = rules(Some("@none"), "==", r#""@none""#);
    assert!(!is_met && told.contains("no set none"), "{told}");
}

#[test]
fn elements_with_a_rate_are_no_plain_ones() {
    let drops = matched("ip", "saddr", "==", r#""@q""#);
    let leads = r#"{"vmap":{"key":{"payload":{"protocol":"ip","field":"saddr"}},"data":"@q"}}"#;
    let read = |kind: &str, stmt: &str, about: &str| {
        let element = format!(r#"{{"elem":{{"val":"10.0.0.1"{about}}}}}"#);
        let (element, rule) = if kind == "map" {
            (format!(r#"[{element},{{"drop":null}}]"#), leads)
        } else {
            (element, drops.as_str())
        };
        let other = format!(
            r#",{{"{kind}":{{"family":"inet","table":"t","name":"q","type":"ipv4_addr"{stmt},"elem":[{element}]}}}}"#
        );
        imported(&nft_with(&other, &[rule]), &args())
    };
    let rate = r#""limit":{"rate":10,"burst":5,"per":"second"}"#;
    let quota = r#""quota":{"val":1000,"val_unit":"bytes"}"#;
    let count = r#""counter":{"packets":1,"bytes":60}"#;
    for kind in ["set", "map"] {
        for one in [rate, quota] {
            for (stmt, about) in [
                (format!(r#","stmt":[{{{one}}}]"#), format!(",{one}")),
                (format!(r#","stmt":{{{one}}}"#), String::new()),
                (String::new(), format!(r#","comment":"x",{one}"#)),
            ] {
                let (rules, told) = read(kind, &stmt, &about);
                assert_eq!(rules, ["allow non-ip", "default deny"], "{kind} {stmt} {about}");
                assert!(told.contains("1 rule left out"), "{kind} {stmt} {about}: {told}");
            }
        }
        let counted = read(
            kind,
            r#","stmt":[{"counter":null}]"#,
            &format!(r#","comment":"x",{count}"#),
        );
        let expected = ["allow non-ip", "deny from 10.0.0.1", "default deny"];
        assert_eq!(
            counted,
            (expected.map(str::to_owned).into(), String::new()),
            "{kind}"
        );
    }
}
