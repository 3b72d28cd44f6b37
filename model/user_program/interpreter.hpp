#pragma once

#include <exception>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/statement.hpp"
#include "model/trainer/logging/run_log.hpp"
#include "model/user_program/backward_walk.hpp"
#include "model/user_program/expression_values.hpp"
#include "model/user_program/gloo_queues.hpp"
#include "model/user_program/locations.hpp"
#include "model/user_program/module_names.hpp"
#include "model/user_program/named_collectives.hpp"
#include "model/user_program/program_settings.hpp"
#include "model/user_program/statement_context.hpp"
#include "model/user_program/statement_failure.hpp"
#include "model/user_program/stream_order.hpp"
#include "model/user_program/tensor_checks.hpp"
#include "model/user_program/variable.hpp"

namespace lockstep {

/// Runs the statements of one rank. Two orders are kept apart: statements order the device through
/// streams as c10d does (a collective comes after the compute stream, and the compute stream after
/// a collective that was waited for), and the host waits only where PyTorch's would.
class Interpreter {
 public:
  /// All outlive the interpreter; `trainer` is null for a bare program.
  Interpreter(Rank& rank, const ProgramSettings& settings, RankLog& log, TrainerScope* trainer);

  /// The statements in order. `return` ends the hook, not only this list.
  Task<Flow> run(const std::vector<Statement>& statements, Frame& frame);
  /// The hook of these names has ended, at this site.
  void leave(Frame& frame, SiteId hook);
  /// The first and the last of a program: hvd.init and hvd.shutdown, where it communicates by name.
  Program open();
  Program close();
  /// LS403 where work was started and never waited for. To be called where the program ends.
  void tell_unwaited();

  /// Whether the statement that runs stands behind an `if`.
  bool is_guarded() const { return guards_ > 0; }
  SiteId site() const { return tensors_.site(); }  ///< of the statement that runs

  Rank& rank() { return rank_; }
  RankLog& log() { return log_; }
  TensorStore& tensors() { return tensors_; }
  const TensorStore& tensors() const { return tensors_; }
  StreamOrder& streams() { return streams_; }
  ModuleNames& names() { return names_; }
  Locations& locations() { return locations_; }
  GradientTape& tape() { return tape_; }
  BackwardWalk& backward() { return backward_; }
  ExpressionValues& expressions() { return expressions_; }
  const ProgramSettings& settings() const { return settings_; }

 private:
  /// One communication, ready to be put into a grouped call.
  struct Call {
    Op op;
    Slice read;
    Slice write;
    std::vector<int64_t> splits;
    TensorPointer data;          ///< null for a barrier
    TensorPointer result;        ///< null where this rank gets none
    GradientPointer gradient;    ///< that flows through the result
    bool data_is_named = false;  ///< the data stays usable beside the result
    bool in_place = false;       ///< the operation writes its data
    bool needs_copy = false;     ///< of data to result, before it
    std::string name;            ///< the result is bound to it, unless empty
    StreamId stream = communication_stream;
    bool does_nothing = false;  ///< this rank is no member of the group
  };
  struct NamedTensor {
    TensorPointer tensor;
    std::string name;            ///< of a bare name, else empty
    GradientPointer gradient{};  ///< that flows through it
  };

  // interpreter.cpp
  Task<Flow> execute(const Statement& statement, Frame& frame);
  Task<Flow> branch(const Statement& statement, Frame& frame);
  Task<Flow> repeat(const Statement& statement, Frame& frame);
  Program assign(const Statement& statement, Frame& frame);
  Program append(const Statement& statement, Frame& frame);
  Program check_assertion(const Statement& statement, Frame& frame);

  // control.cpp
  Task<Flow> call_function(const Statement& statement, Frame& frame);
  Task<Flow> attempt(const Statement& statement, Frame& frame);
  Program run_threads(const Statement& statement, Frame& frame);
  Program run_thread(const Statement& thread, Frame& frame, Ticket done,
                     std::shared_ptr<std::exception_ptr> failure);
  void note_call_of_thread(OpKind kind, GroupId group, SiteId site);
  void check_thread_order(const Statement& statement, const std::vector<LaneId>& lanes);
  void count_statement();

  // module_gather.cpp
  /// Of a module, whose all_gather then depends on the strategy.
  bool lacks_process_group() const {
    return trainer_ != nullptr && (settings_.gathers_rows || !trainer_->has_process_group());
  }
  [[noreturn]] void raise_without_group(SiteId site) const;
  Program communicate_without_group(const Statement& statement, Frame& frame);
  Program gather_alone(const Statement& statement, Frame& frame);
  Program gather_rows(const Statement& statement, Frame& frame);
  Task<NamedTensor> part_of_list(const Variable& part, SiteId site);
  Task<Variable> joined_rows(const NamedTensor& data, SiteId site);

  // communication.cpp, communication_call.cpp
  Program communicate(const Statement& statement, Frame& frame);
  Program communicate_grouped(const Statement& statement, Frame& frame);
  Program communicate_list(const Statement& statement, Frame& frame, Variable::List parts);
  Task<Call> call_of(const Statement& statement, Frame& frame);
  Task<Call> call_with(const Statement& statement, Frame& frame, NamedTensor data);
  Task<NamedTensor> data_of(const Statement& statement, Frame& frame);
  Task<TensorPointer> sized_data(const Statement& statement, Frame& frame);
  Program set_peer(const Statement& statement, Frame& frame, const Group& group, Call& call);
  Program set_splits(const Statement& statement, Frame& frame, const Group& group, Call& call);
  void set_result(const Statement& statement, const Group& group, Call& call);
  Task<int64_t> add_splits(const std::vector<Placed<Expression>>& sizes, Frame& frame,
                           const Group& group, Call& call);
  Program submit(const Statement& statement, Frame& frame, std::vector<Call>& calls);
  Ticket post(const Statement& statement, const std::vector<Call>& calls);
  std::shared_ptr<PendingWork> mark(const Statement& statement, Frame& frame,
                                    std::vector<Call>& calls, Ticket ticket);
  void check_batch(const Statement& statement) const;
  Program barrier(const Statement& statement, Frame& frame);
  Program new_group(const Statement& statement, Frame& frame);
  Task<std::vector<int64_t>> members_of(const Statement& statement, Frame& frame);
  std::vector<int32_t> members_of_color(const Statement& statement, Frame& frame, int64_t color);
  Group group_of(const Statement& statement, Frame& frame);
  void check_reduction(const Statement& statement, Call& call);
  GradientPointer gradient_through(const Statement& statement, const Group& group, const Call& call,
                                   GradientPointer data);
  Program limit_dropped();

  // named_communication.cpp
  Program communicate_by_name(const Statement& statement, Frame& frame);
  Task<std::string> name_of_call(const Statement& statement, Frame& frame);
  Task<TensorRequest> request_of(const Statement& statement, Frame& frame,
                                 const DeviceTensor& data);
  TensorPointer target_of(const Statement& statement, const NamedTensor& data, bool gathers);
  Ticket handed_over(const Statement& statement);
  void note_handed_over(const TensorName& name, const std::string& given, int64_t handle,
                        SiteId site);
  Task<TensorPointer> finish(int64_t handle, SiteId site);
  Program meet(const Statement& statement, RequestKind kind);

  // tensor_lifetime.cpp
  void expose(DeviceTensor& tensor, StreamId on);
  void expose_to_call(const Statement& statement, DeviceTensor& tensor, StreamId on,
                      const std::shared_ptr<PendingWork>& work) const;
  std::shared_ptr<PendingWork> start_work(const Statement& statement, Ticket ticket, StreamId on);

  // device_work.cpp
  Program kernel(const Statement& statement, Frame& frame);
  Program copy(const Statement& statement, Frame& frame);
  Program host(const Statement& statement, Frame& frame);
  Program wait(const Statement& statement, Frame& frame);
  void wait_stream(const Statement& statement);
  Program item(const Statement& statement, Frame& frame);
  StreamId stream_of(const Statement& statement, StreamId otherwise) const;
  StreamId stream_of_call(const Statement& statement, const Op& op);
  TensorPointer named_tensor(const Placed<std::string>& name, Frame& frame, SiteId site);

  Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  TrainerScope* trainer_;
  TensorStore tensors_;
  StreamOrder streams_;
  ModuleNames names_;
  TensorChecks checks_;
  Locations locations_;
  GradientTape tape_;
  BackwardWalk backward_;
  ExpressionValues expressions_;
  GlooQueues gloo_queues_;
  NamedCollectives named_;                           ///< used where settings_.meets_by_name
  std::vector<std::shared_ptr<PendingWork>> works_;  ///< started, and not known to be waited for
  size_t works_to_sort_ = 1024;                      ///< so many, then those waited for go
  std::map<const Statement*, TensorPointer> sized_;  ///< looked up only, never walked
  int calls_open_ = 0;                               ///< of functions, one inside the other
  int32_t guards_ = 0;                               ///< an `if` around an `if` counts twice
  size_t threads_started_ = 0;
  /// The first collective that each host thread of a `threads` has called on a group.
  std::map<LaneId, std::map<GroupId, SiteId>> calls_of_threads_;
};

}  // namespace lockstep
