#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/strategy/data_parallel/horovod/adasum.hpp"
#include "model/strategy/data_parallel/horovod/gradient_negotiation.hpp"
#include "model/strategy/data_parallel/replicated.hpp"

namespace lockstep {

struct StrategyEntry;

/// Arguments of hvd.DistributedOptimizer, and what Horovod reads from its environment.
struct HorovodOptions : GradientNegotiationOptions {
  double predivide_factor = 1;
  Bytes fusion_threshold{int64_t{128} << 20};
  Time cycle_time{int64_t{1'000'000'000}};  ///< 1 ms
  int64_t cache_capacity = 1024;
  bool combines_steps = false;  ///< op=hvd.Adasum
  bool broadcasts_parameters = true;
  bool seeded_alike = false;  ///< ranks draw the same first parameters
  /// Ranks, ascending, that average gradients among themselves; no rank is in two of them. Empty:
  /// all ranks do.
  std::vector<std::vector<int64_t>> process_sets{};
};

/// One process per device; Horovod averages gradients under their names, so that ranks may hand
/// them over in any order (Lightning 1.x, strategies/horovod.py).
class Horovod final : public ReplicatedDataParallel {
 public:
  Horovod(const TrainingPlan& plan, const HorovodOptions& options);
  ~Horovod() override;
  Horovod(const Horovod&) = delete;
  Horovod& operator=(const Horovod&) = delete;

  std::string_view name() const override { return "horovod"; }
  Program setup(Rank& rank, Stage stage) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Task<bool> join(Rank& rank, MirroredIterations& others) override;
  Program teardown(Rank& rank) override;
  void remember(ProgramMemory& memory) const override;

  Program reduce(Rank& rank, Slice data, Reduction reduction, SiteId site) override;
  Program barrier(Rank& rank, SiteId site) override;
  Program broadcast(Rank& rank, Slice data, int32_t root, SiteId site) override;
  Program all_gather(Rank& rank, Slice part, Slice whole, SiteId site) override;
  Task<Slice> gather_rows(Rank& rank, Slice part, std::vector<int64_t> shape, SiteId site) override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  /// torch.distributed is not initialised.
  bool has_process_group() const override { return false; }
  bool accumulates_without_exchange() const override { return false; }
  std::string no_sync_refusal() const override;
  std::vector<KnownDifference> known_differences() override;

 protected:
  GradientExchange* exchange() override { return exchange_ ? &*exchange_ : nullptr; }

 private:
  Program open(Rank& rank);
  NegotiationOptions negotiation(const Rank& rank) const;
  Program open_process_sets(Rank& rank);
  /// Who averages gradients with this rank; null: nobody.
  const std::shared_ptr<Negotiator>& of_gradients() const;
  Program send_states(Rank& rank);
  Program send_optimizer(Rank& rank, size_t optimizer);
  /// Of an optimizer, under its name there.
  struct StateTensor {
    std::string name;
    Slice value;
  };
  Program send_state(Rank& rank, std::vector<StateTensor> tensors, int64_t name);
  Program send_names(Rank& rank, size_t optimizer);
  Task<int64_t> send_object(Rank& rank, std::shared_ptr<Negotiator> among, int64_t bytes,
                            int64_t name, std::string_view type);
  static TensorRequest request_of(RequestKind kind, NameSpace space, int64_t number,
                                  const Slice& data);
  Program join_all(Rank& rank, SiteId site);
  /// Gives what an all_gather has put together.
  Task<Slice> ask(Rank& rank, TensorRequest request, Slice data, Slice whole, SiteId site);

  HorovodOptions options_;
  Rank* rank_ = nullptr;  ///< once it has begun
  std::shared_ptr<Negotiator> negotiator_;
  std::shared_ptr<Negotiator> of_set_;  ///< of the process set that this rank is in
  bool has_process_sets_ = false;
  std::optional<GradientNegotiation> exchange_;
  std::optional<AdasumExchange> adasum_;  ///< then gradients stay where they are
  int64_t backwards_ = 0;                 ///< since the last step
};

/// "horovod", HorovodStrategy.
StrategyEntry horovod();

}  // namespace lockstep
