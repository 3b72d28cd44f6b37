#include "model/strategy/local_model/residual_branches.hpp"

#include <utility>

#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

std::optional<uint32_t> ResidualBranches::residual_of(size_t layer) {
  if (const auto& aside = network().layers[layer].aside) {
    return now_.run_of(aside->begin).residual;
  }
  switch (network().layers[layer].kind) {
    case LayerKind::residual_begin:
      now_.open_residuals.push_back(static_cast<uint32_t>(now_.residuals.size()));
      now_.residuals.emplace_back();
      return now_.open_residuals.back();
    case LayerKind::residual_shortcut: return now_.open_residuals.back();
    case LayerKind::residual_add:
    case LayerKind::residual_concatenate:
    case LayerKind::residual_multiply:
    case LayerKind::aside_end: {
      const uint32_t closed = now_.open_residuals.back();
      now_.open_residuals.pop_back();
      return closed;
    }
    default: return std::nullopt;
  }
}

void ResidualBranches::pass(const LayerRun& run) {
  const LayerKind kind = layer_of(run).kind;
  if (kind == LayerKind::residual_begin) {
    now_.residuals[*run.residual].remembered = now_.current;
  } else if (kind == LayerKind::residual_shortcut) {
    now_.residuals[*run.residual].aside =
        std::exchange(now_.current, now_.residuals[*run.residual].remembered);
  }
}

void ResidualBranches::turn_to_shortcut(Rank& rank, const LayerRun& run) {
  SkipConnection& residual = now_.residuals[*run.residual];
  residual.gradient_of_shortcut = std::exchange(now_.gradient, residual.gradient_of_sum);
  if (!plan().numerics || now_.gradient.dtype == residual.aside.dtype) {
    return;
  }
  const Slice narrowed = transient(rank, now_.gradient.elements, residual.aside.dtype);
  KernelCall call;
  call.kernel = Kernel::cast;
  call.reads = {&now_.gradient, 1};
  call.writes = {&narrowed, 1};
  call.memory_traffic = now_.gradient.bytes() + narrowed.bytes();
  rank.compute(call, {compute(), {}, site_id(replica_sites::layer_backward)});
  now_.gradient = narrowed;
}

void ResidualBranches::meet(Rank& rank, const LayerRun& run, std::vector<Slice>& reads,
                            std::vector<Slice>& writes) {
  SkipConnection& residual = now_.residuals[*run.residual];
  const LayerKind kind = layer_of(run).kind;
  if (layer_of(run).aside) {
    const Slice& aside = residual.branch();
    reads.push_back(aside);
    if (residual.gradient_of_sum.buffer == no_buffer) {
      residual.gradient_of_sum = transient(rank, aside.elements, aside.dtype);
      state_.fill_with_zeros(rank, residual.gradient_of_sum);
    }
    writes.push_back(residual.gradient_of_sum);
  } else if (kind == LayerKind::residual_multiply) {
    const Slice& branch = residual.branch();
    reads.push_back(branch);
    residual.gradient_of_sum = transient(rank, branch.elements, branch.dtype);
    writes.push_back(residual.gradient_of_sum);
  } else if (joins_branches(kind)) {
    residual.gradient_of_sum = now_.gradient;
  } else if (kind == LayerKind::residual_begin) {
    reads.push_back(residual.gradient_of_shortcut.buffer != no_buffer
                        ? residual.gradient_of_shortcut
                        : residual.gradient_of_sum);
  }
}

}  // namespace lockstep
