#include "rehearsal/findings/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "model/metric/definition.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep::cli {

namespace {

using Lines = std::vector<std::string>;
using Kind = StatementKind;

const Statement* statement_of(const OneRun& run, SiteId id) {
  const Site* const site = run.preparation.sites.find(id);
  const Statement* found = nullptr;
  if (site == nullptr || !run.preparation.scenario->program) {
    return nullptr;
  }
  for_each_statement(*run.preparation.scenario->program, [&](const Statement& statement) {
    const bool stands_there = statement.place.line == site->line &&
                              statement.place.column == site->column && site->line > 0;
    found = found == nullptr && stands_there ? &statement : found;
  });
  return found;
}

std::string metric_of(const Statement& statement) {
  return metric_name_of(value_or(statement.name, std::string("metric")));
}

std::string word_of(bool value) { return value ? "True" : "False"; }

// `self.log(..)` as it stands, but for what the remedy changes.
std::string log_call(const Statement& statement, bool sync_dist) {
  const LogSpec& log = statement.log;
  std::string text;
  if (statement.kind == Kind::log_dict) {
    text = "self.log_dict({..}";
  } else {
    const std::string value = log.value ? python_text(log.value->value.text()) : "value";
    text = fmt::format("self.log(\"{}\", {}", value_or(log.name, std::string("name")), value);
  }
  for (const auto& [given, name] :
       {std::pair(&log.prog_bar, "prog_bar"), std::pair(&log.on_step, "on_step"),
        std::pair(&log.on_epoch, "on_epoch")}) {
    if (*given) {
      text += fmt::format(", {}={}", name, word_of((*given)->value));
    }
  }
  if (log.reduce_fx) {
    text += fmt::format(", reduce_fx=\"{}\"", log.reduce_fx->value);
  }
  return text + (sync_dist ? ", sync_dist=True)" : ")");
}

std::string data_text(const Statement& statement) {
  return statement.communication.tensor ? python_text(statement.communication.tensor->value.text())
                                        : "tensor";
}

std::string result_text(const Statement& statement, const std::string& otherwise) {
  return statement.result ? python_text(statement.result->value) : otherwise;
}

// The line that calls what a statement calls.
std::string call_text(const Statement& statement, bool with_trainer) {
  switch (statement.kind) {
    case Kind::all_gather:
      return with_trainer ? fmt::format("{} = self.all_gather({})",
                                        result_text(statement, "gathered"), data_text(statement))
                          : fmt::format("dist.all_gather_into_tensor({}, {})",
                                        result_text(statement, "gathered"), data_text(statement));
    case Kind::all_reduce: return fmt::format("dist.all_reduce({})", data_text(statement));
    case Kind::broadcast: return fmt::format("dist.broadcast({}, src=0)", data_text(statement));
    case Kind::reduce: return fmt::format("dist.reduce({}, dst=0)", data_text(statement));
    case Kind::barrier: return with_trainer ? "self.trainer.strategy.barrier()" : "dist.barrier()";
    case Kind::log:
    case Kind::log_dict: return log_call(statement, value_or(statement.log.sync_dist, false));
    case Kind::compute:
      return fmt::format("{} = self.{}.compute()", result_text(statement, "value"),
                         metric_of(statement));
    case Kind::save_checkpoint: return "trainer.save_checkpoint(path)";
    default: return "";
  }
}

// Lightning writes files and loggers on rank 0 by itself, so that the guard is what hangs.
void name_guarded_statement(const Statement& statement, Finding& finding) {
  if (statement.kind == Kind::save_checkpoint) {
    finding.fix = {
        "call `save_checkpoint` on every rank, outside of the guard: Lightning writes the file on "
        "rank 0 by itself,",
        "and all ranks meet in a barrier behind it"};
  } else if (statement.kind == Kind::log || statement.kind == Kind::log_dict) {
    finding.fix = {fmt::format("call `{}` with sync_dist on every rank, outside of the guard: the "
                               "logger writes on rank 0 by itself;",
                               name_of(statement.kind)),
                   "only `rank_zero_only: true`, without sync_dist, may stand in it"};
  } else if (statement.kind == Kind::compute) {
    finding.fix = {
        "call `compute` on every rank, outside of the guard: it gathers the states of "
        "all; guard only what uses its value"};
  }
}

Lines python_of_missing_call(const Statement& statement, bool with_trainer) {
  const std::string call = call_text(statement, with_trainer);
  if (call.empty()) {
    return {};
  }
  return {call + "   # on every rank",
          with_trainer ? "if self.trainer.is_global_zero:" : "if dist.get_rank() == 0:",
          "    ...   # what one rank does alone: print, write a file of your own"};
}

// Calls of Horovod itself.
Lines python_of_named_call(const Statement* statement, const Finding& finding) {
  const bool starts_all = std::ranges::any_of(finding.fix, [](const std::string& line) {
    return line.find("async: true") != std::string::npos;
  });
  if (starts_all) {
    return {"handles = [hvd.allreduce_async_(tensor, name=name) for name, tensor in named_tensors]",
            "for handle in handles: hvd.synchronize(handle)"};
  }
  const bool is_guarded =
      std::ranges::find(finding.sites, SiteRole::guard, &FindingSite::role) != finding.sites.end();
  if (statement == nullptr || statement->kind != Kind::all_reduce || !is_guarded) {
    return {};
  }
  std::string name;
  if (statement->communication.name) {
    const TextPattern& pattern = statement->communication.name->value;
    name = fmt::format(", name={}\"{}\"", pattern.values.empty() ? "" : "f", pattern.text);
  }
  return {fmt::format("hvd.allreduce_({}{})   # on every rank", data_text(*statement), name),
          "if hvd.rank() == 0:", "    ...   # what one rank does alone: print, write a file"};
}

// "training" where ranks have unequal numbers of training batches.
std::string separating_batches(const OneRun& run, const Finding& finding) {
  const Site* const site = run.preparation.sites.find(finding.why.site);
  return site == nullptr ? "" : site->batches;
}

Lines python_of_calls(const OneRun& run, const Statement* statement, const Finding& finding) {
  const bool with_trainer = !run.preparation.scenario->is_bare_program();
  if (finding.code == "LS101" && meets_by_name(*run.preparation.scenario)) {
    return python_of_named_call(statement, finding);
  }
  if (finding.code == "LS101" && statement != nullptr) {
    return python_of_missing_call(*statement, with_trainer);
  }
  if (!separating_batches(run, finding).empty()) {
    return {"DataLoader(data, sampler=DistributedSampler(data, drop_last=True))"};
  }
  const bool agrees_on_end = std::ranges::any_of(finding.fix, [](const std::string& line) {
    return line.find("all_have_more") != std::string::npos;
  });
  if (finding.code == "LS102" && with_trainer && agrees_on_end) {
    return {"more = self.trainer.strategy.reduce_boolean_decision(has_more, all=True)"};
  }
  if (finding.code == "LS109") {
    const Site* const guard = run.preparation.sites.find(finding.why.site);
    const std::string condition = guard == nullptr || guard->condition.empty()
                                      ? std::string("condition")
                                      : python_text(guard->condition);
    const bool all_must = std::ranges::any_of(finding.fix, [](const std::string& line) {
      return line.find("all: true, as: decided") != std::string::npos;
    });
    return {fmt::format("decided = self.trainer.strategy.reduce_boolean_decision({}, all={})",
                        condition, all_must ? "True" : "False"),
            "if decided:", "    ..."};
  }
  if (finding.code == "LS107" || finding.code == "LS108") {
    return {"works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x, peer),",
            "                                dist.P2POp(dist.irecv, y, peer)])",
            "for work in works: work.wait()"};
  }
  return {};
}

Lines python_of_logged(const Statement* statement, const Finding& finding) {
  if (statement == nullptr || (statement->kind != Kind::log && statement->kind != Kind::log_dict)) {
    return {};
  }
  const auto advises = [&finding](std::string_view words) {
    return std::ranges::any_of(finding.fix, [words](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  };
  const std::string key = value_or(statement->log.name, std::string("value"));
  if (finding.code == "LS307") {
    return {"self.mean = torchmetrics.MeanMetric()   # in __init__",
            "self.mean.update(value, weight=batch_size)",
            fmt::format("self.log(\"{}\", self.mean)", key)};
  }
  if (advises("log the object")) {
    const std::string& line = finding.fix.front();
    const size_t begin = line.find("{m: ") + 4;
    std::string metric = line.substr(begin, line.find_first_of(":}", begin) - begin);
    metric.erase(0, metric.find_first_not_of('{'));
    return {fmt::format("self.{} = torchmetrics.classification.{}()   # in __init__", key, metric),
            fmt::format("self.{}.update(preds, target)", key),
            fmt::format("self.log(\"{}\", self.{})", key, key)};
  }
  return advises("sync_dist: true") ? Lines{log_call(*statement, true)} : Lines{};
}

Lines python_of_state(const Statement* statement, const Finding& finding) {
  if (finding.code == "LS312" && statement != nullptr) {
    if (statement->kind == Kind::compute || statement->kind == Kind::update) {
      return {fmt::format("self.{}.reset()", metric_of(*statement))};
    }
    if (finding.topic == FindingTopic::kept_list && finding.name.starts_with("self.")) {
      return {finding.name + ".clear()"};
    }
  }
  if (finding.code == "LS201") {
    return {"work.wait()"};
  }
  if (finding.code == "LS202") {
    return {"work.wait()   # or tensor.record_stream(stream)"};
  }
  if (finding.code == "LS203" && !finding.did.empty()) {  // else a thread writes, and no stream
    return {"second_stream.wait_stream(first_stream)"};
  }
  if (finding.code == "LS310") {
    return {"x = x.to(self.device)"};
  }
  if (finding.code == "LS402") {
    const bool is_world = finding.group.empty() || finding.group == "world";
    return {is_world ? "DDPStrategy(timeout=datetime.timedelta(hours=1))"
                     : "torch.distributed.new_group(ranks, timeout=datetime.timedelta(hours=1))"};
  }
  const bool sets_epoch = std::ranges::any_of(finding.fix, [](const std::string& line) {
    return line.find("set_epoch") != std::string::npos;
  });
  return sets_epoch ? Lines{"sampler.set_epoch(self.current_epoch)"} : Lines{};
}

// Lightning from 2.5.3 on broadcasts before each batch (fit_loop.py, the SIGTERM flag), which
// torch's Join context does not repeat for ranks whose data have ended. It is of
// DistributedDataParallel alone.
void tell_join(const OneRun& run, const Finding& finding, Lines& fix) {
  const StrategyEntry* const entry = strategies().find(run.preparation.registered_strategy);
  if (entry == nullptr || entry->class_name != "DDPStrategy") {
    return;
  }
  const bool is_uneven = std::ranges::any_of(finding.sites, [](const FindingSite& site) {
    return site.role == SiteRole::cause && site.label.ends_with(" batches");
  });
  const bool is_of_training = separating_batches(run, finding) == "training";
  if (finding.code == "LS102" && (is_uneven || is_of_training)) {
    fix.push_back(
        "with Lightning up to 2.5.2 torch's Join context helps too: strategy: "
        "{DDPStrategy: {join: true}};");
    fix.push_back("later versions broadcast before every batch, which Join does not repeat");
  }
}

}  // namespace

std::string python_text(const std::string& expression) {
  constexpr auto words = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"is_global_zero", "self.trainer.is_global_zero"},
      {"rank", "self.global_rank"},
      {"local_rank", "self.local_rank"},
      {"world_size", "self.trainer.world_size"},
      {"epoch", "self.current_epoch"},
      {"global_step", "self.global_step"},
      {"true", "True"},
      {"false", "False"},
      {"mean", "torch.mean"},
      {"sum", "torch.sum"},
      {"sqrt", "torch.sqrt"},
      {"exp", "torch.exp"},
      {"log", "torch.log"},
      {"concat", "torch.cat"},
      {"full", "torch.full"},
      {"arange", "torch.arange"},
      {"softmax", "torch.softmax"},
      {"isnan", "torch.isnan"},
  });
  const auto continues = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.';
  };
  std::string out;
  for (size_t at = 0; at < expression.size();) {
    size_t end = at + 1;
    if (!continues(expression[at])) {
      out += expression[at];
    } else {
      while (end < expression.size() && continues(expression[end])) {
        ++end;
      }
      const std::string word = expression.substr(at, end - at);
      const auto known =
          std::ranges::find(words, word, &std::pair<std::string_view, std::string_view>::first);
      out += known == words.end() ? word : std::string(known->second);
    }
    at = end;
  }
  return out;
}

void complete_remedies(const OneRun& run, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    const Statement* const statement = statement_of(run, finding.site());
    const bool is_guarded = std::ranges::find(finding.sites, SiteRole::guard, &FindingSite::role) !=
                            finding.sites.end();
    if (finding.code == "LS101" && statement != nullptr && is_guarded) {
      name_guarded_statement(*statement, finding);
    }
    tell_join(run, finding, finding.fix);
    finding.python = python_of_calls(run, statement, finding);
    if (finding.python.empty()) {
      finding.python = python_of_logged(statement, finding);
    }
    if (finding.python.empty()) {
      finding.python = python_of_state(statement, finding);
    }
  }
}

}  // namespace lockstep::cli
