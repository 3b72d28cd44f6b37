#pragma once

#include <optional>
#include <vector>

#include "model/strategy/local_model/loss_scale.hpp"
#include "model/strategy/megatron/megatron_buffers.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep {

/// Types in which Megatron-LM runs a model: parameters and activations all in 16 bits where the
/// precision has some.
TrainingPlan in_megatron_types(TrainingPlan plan);

/// Megatron-LM's optimizers: a rank updates its parameters, or with a distributed optimizer its
/// shard of every bucket. Parameters of 16 bits have a copy in fp32, which is what is updated
/// (megatron/core/optimizer/optimizer.py and distrib_optimizer.py).
class MegatronOptimizer {
 public:
  /// The buffers outlive it, and the replica has its memory.
  MegatronOptimizer(Rank& rank, Replica& replica, const MegatronBuffers& buffers);

  struct Step {
    UpdateOptions options{};
    std::vector<bool> counts{};           ///< by parameter: whose squares enter the norm here
    std::optional<GroupId> norm_group{};  ///< none: this rank has all gradients
    LossScale* loss_scale = nullptr;      ///< under fp16
  };
  /// False: it was skipped, because a gradient on one of the ranks was not finite.
  Task<bool> step(Rank& rank, Step step);
  void forget_state(Rank& rank);
  /// What this rank holds beside the replica, or in place of it: its copies or shards.
  bool holds_more() const { return has_copies_ || is_divided_; }
  std::vector<HeldParameter> held_parameters() const;
  /// `holders`: by parameter, ranks that hold the same of it, of which each writes a share.
  Bytes state_bytes(const std::vector<int32_t>& holders) const;

 private:
  /// Elements of a parameter that this rank updates.
  struct Piece {
    size_t parameter = 0;
    int64_t first_element = 0;
    Slice value;     ///< of the replica
    Slice gradient;  ///< in its bucket
    OptimizedTensor updated;
  };
  void add_piece(size_t parameter, int64_t first, const Slice& value, const Slice& gradient);
  void make_copies(Rank& rank);
  std::vector<Slice> wide_gradients(Rank& rank);
  void update(Rank& rank, const Step& step, const std::vector<Slice>& gradients);

  Replica* replica_;
  bool has_copies_ = false;
  bool is_divided_ = false;
  std::vector<Piece> pieces_;
};

}  // namespace lockstep
