#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/network/network.hpp"
#include "model/network/tensor_parallel/parallel_style.hpp"

namespace lockstep {

/// What every rank of a tensor-parallel group computes, or why there is no such thing.
struct CutNetwork {
  /// The whole network's parameters in their order and under their names, some of them cut, and
  /// exchanges between its layers. All ranks of the group have it alike.
  Network network{};
  std::string where{};    ///< the module, or the name in the plan, that cannot be
  std::string why_not{};  ///< empty: it can
  std::string remedy{};
  bool is_unmodelled = false;        ///< torch has it, Lockstep does not
  std::vector<std::string> notes{};  ///< what can be, and is hardly meant
};

/// Rewrites a network as parallelize_module of torch.distributed.tensor.parallel does on `ranks`
/// ranks: modules of the plan hold and compute their parts, and where layouts of activations
/// change, what has to travel travels. A bias behind a row-parallel product is added before the
/// sum, a share of it on each rank, as DTensor does.
CutNetwork cut_network(const Network& whole, const ParallelPlan& plan, int32_t ranks);

/// The same as Megatron-LM builds a transformer: attention with one projection for query, key and
/// value is cut by heads, too; a bias behind a row-parallel product is added once, behind the sum;
/// output and embedding may share a weight that is cut by the vocabulary. `sequence_parallel`:
/// norms and dropouts get a part of the positions.
CutNetwork cut_as_megatron(const Network& whole, int32_t ranks, bool sequence_parallel);

}  // namespace lockstep
