//! Trees.

use proptest::prelude::*;

use crate::Hash;
use crate::tree::{Tree, leaf, root_of_path};

fn leaves(count: u64) -> Vec<Hash> {
    (0..count).map(|number| leaf(&number.to_string())).collect()
}

/// Computed by a recursive program from the definition in RFC 6962, section 2.1. The leaves are "0", "1", ….
#[test]
fn roots_are_those_that_another_program_computes() {
    for (count, expected) in [
        (
            0,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ),
        (
            1,
            "db3426e878068d28d269b6c87172322ce5372b65756d0789001d34835f601c03",
        ),
        (
            2,
            "cb00989d94a569c0a678ae042b63dcd4625db96440517f37a6eb7976ea24ed4b",
        ),
        (
            3,
            "725d5230db68f557470dc35f1d8865813acd7ebb07ad152774141decbae71327",
        ),
        (
            5,
            "b6748f6ed7a99de7da84fd97e1a3bac6fab8999f4a43695cab9528a2de431147",
        ),
        (
            7,
            "a3e23b32ccb6bf96d092d165d8aa546e09829de8f03b0e8957581d1e16b92bdf",
        ),
        (
            8,
            "3b85a9626c1ccb64c6b95ec7fa64888defe2cf12e39e77e10812ce5fcb9cb58e",
        ),
    ] {
        let root = Tree::new(leaves(count)).root();
        assert_eq!(root.to_string(), expected, "{count} leaves");
    }
}

/// Computed by the same program.
#[test]
fn paths_are_those_that_another_program_computes() {
    let path = |count, index| {
        let path = Tree::new(leaves(count)).path(index);
        path.iter().map(Hash::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        path(5, 4),
        ["9f4a3fc20d4162dc37d4e23d907848731a76043ffff6d69288bf1abfbcff478e"]
    );
    assert_eq!(
        path(7, 2),
        [
            "906c5d2485cae722073a430f4d04fe1767507592cef226629aeadb85a2ec909d",
            "cb00989d94a569c0a678ae042b63dcd4625db96440517f37a6eb7976ea24ed4b",
            "973f083957c7359fb1943acf9e6689bca6ca5ea7197d808aad3c14498689efe0",
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_path_leads_to_the_root_from_its_leaf_only(count in 1..200_u64, one in any::<prop::sample::Index>(), other in any::<prop::sample::Index>()) {
        let tree = Tree::new(leaves(count));
        let (one, other) = (one.index(usize::try_from(count).unwrap()), other.index(usize::try_from(count).unwrap()));
        let leaves = leaves(count);
        let root = |leaf: usize, index: usize, count, path: &[Hash]| {
            root_of_path(leaves[leaf], index as u64, count, path)
        };
        let path = tree.path(one);
        prop_assert_eq!(root(one, one, count, &path), Some(tree.root()));
        if other != one {
            prop_assert_ne!(root(other, one, count, &path), Some(tree.root()));
            prop_assert_ne!(root(one, other, count, &path), Some(tree.root()));
        }
        prop_assert_eq!(root(one, usize::try_from(count).unwrap() + one, count, &path), None);
        let longer = [path.clone(), vec![Hash::ZERO]].concat();
        prop_assert_eq!(root(one, one, count, &longer), None);
        if let [shorter @ .., _] = &path[..] {
            prop_assert_eq!(root(one, one, count, shorter), None);
        }
    }
}

/// The text of a leaf is no node, however it is chosen.
#[test]
fn a_node_is_no_leaf() {
    let pair = leaves(2);
    let text: Vec<_> = pair.iter().flat_map(|hash| hash.0).collect();
    let forged = Hash::of(&[&[0], &text]);
    assert_ne!(forged, Tree::new(pair).root());
}
