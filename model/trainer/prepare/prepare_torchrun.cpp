// The arguments of torchrun (torch/distributed/run.py).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/trainer/prepare/node_range.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

/// Reads them for one launcher, up to the first reason for which torchrun would not start.
class TorchrunReader {
 public:
  TorchrunReader(Preparation& preparation, const Object& launcher)
      : preparation_(preparation),
        launcher_(launcher),
        launch_(preparation.placement.launch),
        range_(node_range_of(launcher)) {}

  bool read() {
    return read_range() && read_restarts() && read_rendezvous() && check_meeting() &&
           check_static();
  }

 private:
  SourcePlace place_of(std::string_view name) const {
    const auto argument = std::ranges::find(launcher_.arguments, name, &ObjectArgument::name);
    return argument == launcher_.arguments.end() ? launcher_.place : argument->place;
  }

  bool fail(Kind kind, std::string_view at, const std::string& message, const std::string& remedy) {
    add_problem(preparation_, kind, place_of(at), message, remedy,
                kind == Kind::refused ? refused_code : "");
    return false;
  }

  std::string written_nodes() const {
    const PlainValue* const given = launcher_.find("nnodes");
    return given == nullptr ? "1" : text_of(*given);
  }

  std::string text(std::string_view name) const {
    const PlainValue* const given = launcher_.find(name);
    const std::string* const written = given == nullptr ? nullptr : given->get_if<std::string>();
    return written == nullptr ? "" : *written;
  }

  bool read_range() {
    if (range_.is_legal) {
      launch_.least_nodes = range_.least;
      launch_.most_nodes = range_.most;
      return is_in_cluster();
    }
    const bool is_upside_down = range_.least > range_.most;
    return fail(
        Kind::invalid, "nnodes",
        is_upside_down
            ? fmt::format("`nnodes: {}`: the minimum of {} nodes is above the maximum of {}",
                          written_nodes(), range_.least, range_.most)
            : fmt::format("`nnodes: {}` is neither a number of nodes nor MIN:MAX", written_nodes()),
        is_upside_down ? fmt::format("write nnodes: \"{}:{}\"", range_.most, range_.least)
                       : "write nnodes: 4, or nnodes: \"2:4\"");
  }

  // RendezvousTimeout.join: the agents that are there wait for the minimum.
  bool is_in_cluster() {
    const std::optional<ClusterSpec>& cluster = preparation_.scenario->cluster;
    const int64_t there = cluster ? value_or(cluster->nodes, range_.least) : range_.least;
    return range_.least <= there ||
           fail(Kind::refused, "nnodes",
                fmt::format("`nnodes: {}` asks for {}{} node{}, and the cluster has {}: the agents "
                            "wait 10 min for others, and end",
                            written_nodes(), range_.least == range_.most ? "" : "at least ",
                            range_.least, range_.least == 1 ? "" : "s", there),
                fmt::format("set cluster.nodes, or write nnodes: {}", there));
  }

  bool read_restarts() {
    const PlainValue* const given = launcher_.find("max_restarts");
    const int64_t* const restarts = given == nullptr ? nullptr : given->get_if<int64_t>();
    launch_.max_restarts = restarts == nullptr ? 0 : *restarts;
    if (launch_.max_restarts < 0) {
      return fail(Kind::invalid, "max_restarts",
                  fmt::format("`max_restarts` is {}", launch_.max_restarts), "at least 0");
    }
    const bool is_bare = preparation_.scenario->is_bare_program();
    if (range_.least != range_.most && !launch_.takes_any_nodes && !is_bare) {
      add_problem(preparation_, Kind::note, place_of("nnodes"),
                  fmt::format("`nnodes: {}` is taken as the {} that the trainer asks for: "
                              "Lightning refuses any other number",
                              written_nodes(), launch_.nodes),
                  "write trainer: {num_nodes: GROUP_WORLD_SIZE}, as a script that reads it from "
                  "the environment");
    }
    if (is_bare && launch_.max_restarts > 0) {
      add_problem(preparation_, Kind::note, place_of("max_restarts"),
                  "`max_restarts` has no effect here: restarts are modelled for scenarios with a "
                  "trainer");
    }
    return true;
  }

  bool read_rendezvous() {
    constexpr std::string_view backends[] = {"c10d", "etcd", "etcd-v2", "static"};
    const PlainValue* const standalone = launcher_.find("standalone");
    const bool* const is_alone = standalone == nullptr ? nullptr : standalone->get_if<bool>();
    launch_.is_standalone = is_alone != nullptr && *is_alone;
    launch_.rendezvous = text("rdzv_backend");
    launch_.endpoint = text("rdzv_endpoint");
    if (!launch_.rendezvous.empty() &&
        std::ranges::find(backends, launch_.rendezvous) == std::end(backends)) {
      return fail(Kind::invalid, "rdzv_backend",
                  fmt::format("torchrun has no rendezvous backend `{}`", launch_.rendezvous),
                  "write c10d, etcd, etcd-v2 or static");
    }
    if (!launch_.endpoint.empty() && !check_endpoint()) {
      return false;
    }
    return !launch_.is_standalone || stand_alone();
  }

  // parse_rendezvous_endpoint: a host, and a port where the backend has none of its own.
  bool check_endpoint() {
    const std::string_view whole = launch_.endpoint;
    const size_t colon = whole.rfind(':');
    const std::string_view port = colon == std::string_view::npos ? "" : whole.substr(colon + 1);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    const bool is_port =
        error == std::errc() && end == port.data() + port.size() && number >= 0 && number <= 65535;
    if (colon == 0 || (colon != std::string_view::npos && !is_port)) {
      return fail(Kind::invalid, "rdzv_endpoint",
                  fmt::format("`rdzv_endpoint: {}` is not HOST:PORT", whole),
                  "write rdzv_endpoint: \"node0:29400\"");
    }
    if (launch_.rendezvous == "static" && colon == std::string_view::npos) {
      return fail(Kind::refused, "rdzv_endpoint",
                  fmt::format("torchrun raises: the endpoint {} has no port, which the static "
                              "rendezvous needs",
                              whole),
                  "write rdzv_endpoint: \"node0:29500\"");
    }
    return true;
  }

  // It sets backend and endpoint itself: each agent meets at its own localhost.
  bool stand_alone() {
    for (const char* name : {"rdzv_backend", "rdzv_endpoint"}) {
      const std::string given = text(name);
      if (!given.empty() && given != "c10d") {
        add_problem(preparation_, Kind::warning, place_of(name),
                    fmt::format("`{}` is ignored: `standalone` sets it", name),
                    "leave one of them out", ignored_code);
      }
    }
    launch_.rendezvous = "c10d";
    launch_.endpoint.clear();
    if (range_.least > 1 || launch_.nodes > 1) {
      return fail(Kind::refused, "standalone",
                  "with `standalone` the agent of each node meets at its own localhost: the nodes "
                  "never find each other",
                  "leave standalone out and write rdzv_backend: c10d, rdzv_endpoint: "
                  "\"node0:29400\"");
    }
    return true;
  }

  bool check_meeting() {
    const std::string host = launch_.endpoint.substr(0, launch_.endpoint.rfind(':'));
    const bool is_local = host == "localhost" || host == "::1" || host.starts_with("127.");
    const bool hosts_store = launch_.rendezvous == "c10d" && !launch_.is_standalone;
    if (launch_.nodes > 1 && (is_local || (hosts_store && launch_.endpoint.empty()))) {
      return fail(Kind::refused, launch_.endpoint.empty() ? "rdzv_backend" : "rdzv_endpoint",
                  fmt::format("{}: the agent of each node meets at its own localhost, and waits "
                              "there for {} nodes",
                              launch_.endpoint.empty()
                                  ? "`rdzv_endpoint` is missing"
                                  : fmt::format("`rdzv_endpoint` is {}", launch_.endpoint),
                              launch_.nodes),
                  "write rdzv_endpoint: \"node0:29400\"");
    }
    const bool needs_others =
        range_.least != range_.most || (launch_.max_restarts > 0 && launch_.nodes > 1);
    if (launch_.rendezvous.empty() && needs_others) {
      add_problem(preparation_, Kind::note,
                  place_of(launch_.max_restarts > 0 ? "max_restarts" : "nnodes"),
                  "c10d is assumed as rendezvous: with torchrun's default, static, agents wait "
                  "for all nodes of `nnodes` and do not restart together",
                  "write rdzv_backend: c10d, rdzv_endpoint: \"node0:29400\"");
    }
    return true;
  }

  // static_tcp_rendezvous.py: as many nodes as the maximum, and nobody learns of a restart.
  bool check_static() {
    if (!launch_.is_static()) {
      return true;
    }
    if (range_.least != range_.most) {
      add_problem(preparation_, Kind::warning, place_of("nnodes"),
                  fmt::format("the minimum of `nnodes: {}` is ignored: the static rendezvous waits "
                              "for {} nodes",
                              written_nodes(), range_.most),
                  "write rdzv_backend: c10d", ignored_code);
      launch_.least_nodes = launch_.most_nodes;
    }
    if (launch_.max_restarts > 0 && launch_.most_nodes > 1) {
      return fail(Kind::unsupported, "rdzv_backend",
                  "restarts on several nodes with the static rendezvous are not modelled: each "
                  "agent restarts its own ranks, which wait until the time limits of the others "
                  "end theirs",
                  "write rdzv_backend: c10d, whose agents restart together");
    }
    return true;
  }

  Preparation& preparation_;
  const Object& launcher_;
  Launch& launch_;
  NodeRange range_;
};

}  // namespace

bool read_torchrun(Preparation& preparation, const Object& launcher) {
  return TorchrunReader(preparation, launcher).read();
}

}  // namespace lockstep
