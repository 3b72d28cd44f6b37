#pragma once

#include <functional>
#include <vector>

#include "model/network/attention_part.hpp"
#include "model/program/rank.hpp"
#include "model/strategy/local_model/context_run.hpp"
#include "model/strategy/local_model/tensor_ranks.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// Where an attention's core runs whose positions ranks divide.
struct ContextPlace {
  const TrainingPlan* plan = nullptr;
  TensorRanks ranks{};  ///< that have the other positions
  size_t layer = 0;
  int64_t samples = 1;
  DType dtype = DType::fp32;  ///< of query, key and value
  StreamId compute{};
  SiteId site{};  ///< of what it computes
  /// Where values are computed: memory that lives as long as the forward.
  std::function<Slice(int64_t elements, DType dtype)> memory{};
};

/// One pass of such a core: what is computed and what travels, as Transformer Engine does it
/// (transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py).
class ContextAttention {
 public:
  ContextAttention(Rank& rank, const ContextPlace& place);
  ContextAttention(const ContextAttention&) = delete;
  ContextAttention& operator=(const ContextAttention&) = delete;
  ~ContextAttention();

  /// `input`: query, key and value side by side; with `output` of no buffer where nothing carries
  /// values.
  ContextRun forward(const Slice& input, const Slice& output);
  /// `output`: what the forward gave.
  Ticket backward(const ContextRun& run, const Slice& output, const Slice& gradient,
                  const Slice& input_gradient);

 private:
  /// Whose queries meet whose keys in a kernel.
  struct Meeting {
    int32_t first_query_rank = 0;
    int32_t query_ranks = 1;
    int32_t first_key_rank = 0;
    int32_t key_ranks = 1;
    bool begins_query = true;
    bool begins_key = true;
    int64_t part_of_work = 1;  ///< one of so many equal ones
  };
  // With all_gather.
  ContextRun forward_by_gather(const Slice& input, const Slice& output);
  Ticket backward_by_gather(const ContextRun& run, const Slice& output, const Slice& gradient,
                            const Slice& input_gradient);
  Slice gathered(const Slice& part);
  Slice scattered(const Slice& whole);
  // With all_to_all.
  ContextRun forward_by_heads(const Slice& input, const Slice& output);
  Ticket backward_by_heads(const ContextRun& run, const Slice& gradient,
                           const Slice& input_gradient);
  Slice exchanged(const Slice& from, std::string_view site);
  // With a ring.
  ContextRun forward_by_ring(const Slice& input, const Slice& output);
  Ticket backward_by_ring(const ContextRun& run, const Slice& output, const Slice& gradient,
                          const Slice& input_gradient);
  Ticket pass_on(const Slice& sent, const Slice& received, int32_t step, Ticket after);
  void merge(int32_t key_rank);

  Ticket compute(bool is_forward, AttentionPart part, const Meeting& meeting,
                 const std::vector<Slice>& reads, const std::vector<Slice>& writes,
                 Bytes moved = {});
  Ticket attend(const Meeting& meeting, const std::vector<Slice>& reads,
                const std::vector<Slice>& writes, bool is_forward);
  /// Between `reads` and `writes` apart.
  Ticket rearrange(bool is_forward, AttentionPart part, const std::vector<Slice>& reads,
                   const std::vector<Slice>& writes, int64_t elements);
  /// What travels has memory in every case; what is only computed where values are.
  Slice travelling(int64_t elements);
  Slice local(int64_t elements);
  Slice log_sums();
  Ticket ready(std::string_view site);
  void wait_for(Ticket done, std::string_view site);

  bool has_values() const { return place_.plan->numerics; }
  int32_t ranks() const { return place_.ranks.ranks; }
  int32_t own() const { return place_.ranks.index; }
  int32_t neighbour(int32_t step) const { return (own() + step + ranks()) % ranks(); }
  const Layer& layer() const { return place_.plan->network->layers[place_.layer]; }
  int64_t groups() const;

  Rank& rank_;
  ContextPlace place_;
  CoreWidths widths_;
  int64_t rows_;
  int64_t query_;  ///< elements of this rank's queries
  int64_t key_;
  std::vector<Slice> held_;  ///< released at the end of the pass
};

}  // namespace lockstep
