#include "model/trainer/loop/log_statements.hpp"

#include <fmt/core.h>

#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

using Kind = StatementKind;

// fx_validator.py and module.py.
void check_call(const LogCall& call, const LogRules& rules) {
  const auto fail = [&call](const std::string& message) {
    throw ProgramException(call.site, message);
  };
  if (!rules.may_log) {
    fail(fmt::format("You can't `self.log()` inside `{}`", call.hook));
  }
  if (rules.only_on_epoch && (call.on_step || !call.on_epoch)) {
    fail(fmt::format("You can't `self.log({}={})` inside `{}`",
                     call.on_step ? "on_step" : "on_epoch", call.on_step ? "True" : "False",
                     call.hook));
  }
  if (!call.on_step && !call.on_epoch) {
    fail("`self.log(on_step=False, on_epoch=False)` is not useful");
  }
  if (call.name.find("/dataloader_idx_") != std::string::npos) {
    fail(
        fmt::format("You called `self.log` with the key `{}`, but it should not contain "
                    "information like `dataloader_idx`",
                    call.name));
  }
}

}  // namespace

LogStatements::LogStatements(const TrainingContext& context, const TrainerCollectives& collectives,
                             const HookRunner& hooks, const BatchUnderWay& batch,
                             MetricStatements& metrics, LoggedResults* const& results)
    : program_(context.program),
      log_(context.log),
      interpreter_(context.interpreter),
      collectives_(collectives),
      hooks_(hooks),
      batch_(batch),
      metrics_(metrics),
      results_(results) {}

Program LogStatements::run(const Statement& statement, Frame& frame) {
  if (results_ == nullptr) {
    throw ProgramException(site_of(statement), fmt::format("You can't `self.log()` in `{}`: no "
                                                           "loop runs",
                                                           hooks_.current()));
  }
  if (statement.kind == Kind::log) {
    co_await log_value(statement, statement.log.name->value, statement.log.value->value, frame);
    co_return;
  }
  if (statement.log.value) {
    MetricInstance* const metric = metrics_.named(statement.log.value->value, frame);
    if (metric == nullptr) {
      const Value given = co_await interpreter_.expressions().value_of(statement.log.value->value,
                                                                       frame, site_of(statement));
      if (given.is(Value::Kind::map)) {
        lack_at(log_, site_of(statement), "log_dict of what `compute` has given is not modelled",
                "log the collection itself: log_dict: {dictionary: NAME}");
      }
    }
    if (metric == nullptr || !metric->definition().is_collection()) {
      throw ProgramException(site_of(statement), fmt::format("`{}` is not a MetricCollection",
                                                             statement.log.value->value.text()));
    }
    co_await log_metric(statement, "", metric);
  }
  for (const Binding& binding : statement.log.dictionary) {
    co_await log_value(statement, binding.name, binding.expression, frame);
  }
}

Program LogStatements::log_value(const Statement& statement, const std::string& name,
                                 const Expression& expression, Frame& frame) {
  if (MetricInstance* const metric = metrics_.named(expression, frame)) {
    co_await log_metric(statement, name, metric);
    co_return;
  }
  LogCall call = log_call(statement, name);
  call.value = co_await interpreter_.expressions().tensor_value(expression, frame, call.site);
  if (call.value->slice.elements != 1 || call.value->slice.buffer == no_buffer) {
    throw ProgramException(call.site,
                           fmt::format("`self.log({}, ..)` was called, but the tensor must have a "
                                       "single element; write mean({})",
                                       name, expression.text()));
  }
  if (call.sync && program_.trainer.lightning >= Version{2, 1, 0}) {
    interpreter_.locations().check_call(*call.value, call.site);  // before 2.1 it was moved first
  }
  if (statement.log.batch_size) {
    call.batch_size = co_await interpreter_.expressions().integer_of(
        statement.log.batch_size->value, frame, call.site, "`batch_size`");
    if (call.batch_size < 1) {
      throw ProgramException(call.site, fmt::format("`batch_size` of log is {}; it weights a mean, "
                                                    "and is at least 1",
                                                    call.batch_size));
    }
  }
  co_await results_->log(call);
}

// A metric object is computed at the end of the epoch, by itself over all ranks; sync_dist changes
// nothing. A collection is logged by log_dict, a key per member.
Program LogStatements::log_metric(const Statement& statement, const std::string& name,
                                  MetricInstance* metric) {
  const MetricDefinition& definition = metric->definition();
  if (definition.is_collection() && statement.kind == Kind::log) {
    throw ProgramException(site_of(statement),
                           fmt::format("`self.log({}, ..)` was called with a MetricCollection; "
                                       "write log_dict: {{dictionary: {}}}",
                                       name, definition.name));
  }
  for (size_t i = 0; i < metric->objects().size(); ++i) {
    const std::string key =
        definition.is_collection() ? definition.key_of(definition.members[i]) : name;
    LogCall call = log_call(statement, key);
    const SiteId place = program_.log_sites.count(key) != 0 ? call.epoch_site : site_of(statement);
    call.metric = &metric->objects()[i];
    call.state_sites = &program_.metric_sites.of(place, definition.name)[i];
    call.sync = false;
    co_await results_->log(call);
  }
}

LogCall LogStatements::log_call(const Statement& statement, const std::string& name) const {
  const LogSpec& log = statement.log;
  const LogRules rules = log_rules(hooks_.current());
  const bool of_loader = results_->loader() != LoggedResults::only_loader;
  LogCall call;
  call.name = name;
  if (of_loader && value_or(log.add_dataloader_idx, true)) {
    call.loader_suffix = fmt::format("/dataloader_idx_{}", results_->loader());
  }
  call.on_step = value_or(log.on_step, rules.on_step);
  call.on_epoch = value_or(log.on_epoch, rules.on_epoch);
  call.sync = value_or(log.sync_dist, false) && collectives_.distributed() &&
              !value_or(log.rank_zero_only, false);
  call.to_logger = value_or(log.logger, true);
  call.to_progress_bar = value_or(log.prog_bar, false);
  call.hook = hooks_.current();
  call.rank_zero_only = value_or(log.rank_zero_only, false);
  call.batch_size = batch_.size_or(1);
  const auto known = program_.log_sites.find(name);
  const SiteId own = site_of(statement);
  const LogSites sites = known != program_.log_sites.end() ? known->second : LogSites{own, own};
  call.site = sites.step;
  call.epoch_site = sites.epoch;
  const std::string reduction = value_or(log.reduce_fx, std::string("mean"));
  call.reduction = reduction == "sum"   ? LogReduction::sum
                   : reduction == "min" ? LogReduction::min
                   : reduction == "max" ? LogReduction::max
                                        : LogReduction::mean;
  check_call(call, rules);
  return call;
}

}  // namespace lockstep
