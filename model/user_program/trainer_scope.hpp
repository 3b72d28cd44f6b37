#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/buffer.hpp"
#include "model/expression/value.hpp"
#include "model/program/rank.hpp"
#include "model/scenario/statement.hpp"
#include "model/user_program/variable.hpp"

namespace lockstep {

/// How a list of statements ended.
enum class Flow : uint8_t { next, returned };

/// Trainer-specific parts of a program: statements that need a trainer, and the names it defines.
class TrainerScope {
 public:
  virtual ~TrainerScope() = default;
  /// `global_step`, `batch_idx`, ..; nothing for names that are not the trainer's.
  virtual std::optional<Value> lookup(std::string_view name) = 0;
  virtual Task<Flow> run(const Statement& statement, Frame& frame) = 0;
  /// Said before an expression reads `callback_metrics`: what is logged may have to be reduced.
  virtual Program refresh_callback_metrics() = 0;
  /// Whether torch.distributed has a process group, or one device stands for ranks.
  virtual bool has_process_group() const = 0;
  /// Strategy::gather_rows.
  virtual Task<Slice> gather_rows(Slice part, std::vector<int64_t> shape, SiteId site) = 0;
  /// A list of the module has a new entry, a name of it is bound, a list of it is read.
  virtual void list_grew(const std::string& name) = 0;
  virtual void name_bound(const std::string& name) = 0;
  virtual void list_read(const std::string& name, SiteId site) = 0;
  /// The value of a parameter on this rank, by its name in the module: "fc.weight". Nothing where
  /// there is none of that name. Throws OperationError where parameters carry no values.
  virtual std::optional<Value> parameter(std::string_view name) = 0;
  /// A column of the batch that runs, which came to the device with it.
  virtual bool is_column(std::string_view name) const = 0;
};

}  // namespace lockstep
