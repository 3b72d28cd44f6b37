#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/strategy/data_parallel/bagua/bagua_exchange.hpp"
#include "model/strategy/data_parallel/bagua/bagua_groups.hpp"
#include "model/strategy/data_parallel/bagua/bagua_options.hpp"
#include "model/strategy/data_parallel/bagua/bucket_operation.hpp"
#include "model/strategy/data_parallel/bagua/low_precision.hpp"
#include "model/strategy/data_parallel/replicated.hpp"

namespace lockstep {

struct StrategyEntry;

/// BaguaStrategy of Lightning 1.6 to 1.9: the algorithms of Bagua 0.9.2 (torch_api/algorithms).
/// Every rank holds the whole model; the algorithm says what is exchanged, how exactly, and when.
class Bagua final : public ReplicatedDataParallel {
 public:
  Bagua(const TrainingPlan& plan, const BaguaOptions& options);

  std::string_view name() const override { return "bagua"; }
  Program setup(Rank& rank, Stage stage) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program teardown(Rank& rank) override;
  Program reduce(Rank& rank, Slice data, Reduction reduction, SiteId site) override;
  std::vector<KnownDifference> known_differences() override;
  std::optional<double> compression_error(Rank& rank) override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  Neighbourhoods neighbourhoods_of_ranks(const RanksOfRun& run) override;
  bool counts_steps() const override;
  void add_step_kind(int64_t ahead, int64_t forwards, std::vector<int64_t>& kind) const override;
  void add_place(int64_t steps, int64_t forwards, std::vector<int64_t>& place) const override;
  std::string weights_change_beside() const override;
  int64_t steps_of_cycle(int64_t forwards) const override;
  void leave_out(int64_t steps, int64_t forwards) override;

 protected:
  GradientExchange* exchange() override { return exchange_.get(); }
  Program before_forward(Rank& rank, const StepOptions& options) override;

 private:
  void allocate(Rank& rank);
  std::optional<int64_t> forwards_of_warmup() const;
  std::vector<WeightBucket> weights_in_buckets(Rank& rank, Bytes size, bool flatten,
                                               std::vector<Slice>& parameters);
  void allocate_optimizer_state(Rank& rank);
  Program send_states(Rank& rank);
  std::unique_ptr<BaguaExchange> make_exchange();
  std::unique_ptr<BaguaExchange> gradient_buckets(std::unique_ptr<BucketOperation> operation);
  std::unique_ptr<BaguaExchange> moment_buckets();
  std::unique_ptr<BaguaExchange> async_average() const;
  std::unique_ptr<BucketOperation> compressed_average() const;
  bool is_due_for_reset() const;
  Program reset(Rank& rank);

  BaguaOptions options_;
  BaguaGroups groups_;                 ///< of the algorithm
  BaguaGroups all_;                    ///< what is averaged before QAdam and async begin
  std::vector<WeightBucket> weights_;  ///< where the algorithm exchanges weights
  GroupId thread_group_{};             ///< of async's thread
  Slice error_;                        ///< the largest of a compression; no_buffer: nobody keeps it
  std::unique_ptr<BaguaExchange> exchange_;
  std::unique_ptr<BaguaExchange> before_;  ///< of the warm-up: its buckets hold the gradients
  int64_t forwards_ = 0;                   ///< through the wrapper, in this fit
  int64_t steps_ = 0;                      ///< of the optimizer, in this fit
};

/// "bagua", BaguaStrategy.
StrategyEntry bagua();

}  // namespace lockstep
