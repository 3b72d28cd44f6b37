#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/core/ranks_of_nodes.hpp"
#include "model/scenario/object.hpp"

namespace lockstep {

/// A host of a launcher, and how many processes it has room for.
struct HostSlots {
  std::string name;
  int64_t slots = 1;
};

/// The hosts that a launcher is given, in their order.
struct HostList {
  std::vector<HostSlots> hosts;  ///< empty: none are given, the machine itself has room for all
  SourcePlace place{};
  std::string problem;  ///< empty: none
  std::string remedy;   ///< then

  int64_t slots() const;
};

/// `hosts` of horovodrun and mpirun ("host1:4,host2:4", a list of such texts, or of slots alone),
/// `host_list` or `hosts` of baguarun ("host1,host2", or a list of names).
/// Sources: horovod/runner/common/util/hosts.py; mpirun(1) of Open MPI, -H; baguarun.py.
HostList hosts_of(const Object& launcher);

/// How many processes each host gets: one host is filled after the other. Those without any are not
/// in it.
RanksOfNodes fill_hosts(const HostList& list, int64_t processes);

}  // namespace lockstep
