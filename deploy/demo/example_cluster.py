"""An example's cluster: what its cluster.toml says, as emulated devices."""
import os
import tomllib

from demo import say


def read_example(folder):
    path = os.path.join(folder, "cluster.toml")
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise SystemExit(f"demo: no example there: {error}") from error


def as_table_says(example, name, folder):
    """The example with what its table `name` has in place of its own: `each_node` in every node, `set` in every row's job. A model's
    file lies in the example's folder."""
    table = example[name]
    settings = dict(table.get("set", {}))
    if "model.config" in settings:
        settings["model.config"] = os.path.abspath(os.path.join(folder, settings["model.config"]))
    nodes = [node | table.get("each_node", {}) for node in example["node"]]
    rows = [row | {"set": settings | row.get("set", {})} for row in table["strategy"]]
    return example | table | {"node": nodes, "strategy": rows}


def start_node(cluster, example, node):
    links = {key: example[key] for key in ("link_bytes_per_second", "host_link_bytes_per_second") if key in example}
    devices = [{"kind": "emulated", "model": card, **links} for card in node["cards"]]
    offers = {"host_memory_bytes": int(node["host_memory_bytes"])} if "host_memory_bytes" in node else {}
    cluster.start_worker(node["name"], devices, example["emulation"],
                         network={"node_link_bytes_per_second": node["nic_bytes_per_second"]}, **offers)


def start_cluster(cluster, example):
    cluster.start_coordinator()
    for node in example["node"]:
        start_node(cluster, example, node)
    cluster.wait_for_nodes(node["name"] for node in example["node"])
    described = "; ".join(f"{node['name']}: {' + '.join(node['cards'])}" for node in example["node"])
    say(f"a coordinator at {cluster.address} and {len(example['node'])} workers ({described})")
    say(f"watch them in a browser: {cluster.motley('open')['url']}")
