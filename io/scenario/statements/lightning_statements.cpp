#include "io/scenario/statements/statement_fields.hpp"

namespace lockstep {
namespace {

using Kind = StatementKind;

template <auto Member, class Form = FormOfMember<Member>>
Field<Statement> log_field(KeyRow row) {
  return part_field<&Statement::log, Member, Form>(row);
}

Field<Statement> dictionary_field() {
  KeyRow row{"dictionary", "required", "the values to log, in this order"};
  row.type = "map KEY: expr, or NAME of a MetricCollection or of what it gave";
  return {row, [](Reader& reader, const Node& node, const KeyRow&, Statement& statement) {
            if (node.kind == Node::Kind::scalar) {
              if (auto metric = NameForm::read(reader, node, {"dictionary", "", ""})) {
                ExpressionNode name;
                name.kind = ExpressionNode::Kind::name;
                name.place = reader.place(node);
                name.name = *metric;
                statement.log.value = {Expression(make_expression_node(std::move(name)), *metric),
                                       reader.place(node)};
              }
              return;
            }
            statement.log.dictionary = read_bindings(reader, node, "dictionary", true);
          }};
}

/// The options of `self.log`, which `self.log_dict` shares.
StatementFields log_fields(StatementFields own) {
  const StatementFields options = {
      log_field<&LogSpec::prog_bar>({"prog_bar", "false", "show it in the progress bar"}),
      log_field<&LogSpec::logger>({"logger", "true", "write it with the loggers"}),
      log_field<&LogSpec::on_step>({"on_step", "as the hook", "log this step's value"}),
      log_field<&LogSpec::on_epoch>({"on_epoch", "as the hook", "log the epoch's value"}),
      log_field<&LogSpec::reduce_fx>({"reduce_fx", "mean", "`mean`, `sum`, `max` or `min`"}),
      log_field<&LogSpec::sync_dist>({"sync_dist", "false", "reduce over the ranks"}),
      log_field<&LogSpec::rank_zero_only>({"rank_zero_only", "false", "on rank 0 alone"}),
      log_field<&LogSpec::batch_size>({"batch_size", "from the batch", "weight of the mean"}),
      log_field<&LogSpec::add_dataloader_idx>(
          {"add_dataloader_idx", "true", "the key names the loader where there are several"}),
  };
  own.insert(own.end(), options.begin(), options.end());
  return own;
}

Field<Statement> metric_field() {
  return field<&Statement::name, NameForm>({"metric", "required", "a name of `metrics`"});
}

std::vector<StatementRow> optimization_rows() {
  return {
      {Kind::backward,
       "loss",
       {},
       "`manual_backward`",
       {field<&Statement::expression>({"loss", "loss", "the loss to differentiate"}),
        field<&Statement::through>(
            {"through", "strategy", "`module` = `loss.backward()` of a loop without Lightning"})}},
      {Kind::optimizer_step,
       "optimizer",
       {},
       "`optimizer.step()`",
       {field<&Statement::optimizer, NameForm>({"optimizer", "the only one", "its name"})}},
      {Kind::optimizer_closure,
       "",
       {},
       "in the hook `optimizer_step`: training_step, zero_grad and backward without a step",
       {}},
      {Kind::zero_grad,
       "optimizer",
       {},
       "`optimizer.zero_grad()`",
       {field<&Statement::optimizer, NameForm>({"optimizer", "the only one", "its name"}),
        field<&Statement::set_to_none>(
            {"set_to_none", "as the version", "free the gradients, not fill them with 0"})}},
      {Kind::clip_gradients,
       "gradient_clip_val",
       {},
       "`self.clip_gradients`, before the step",
       {field<&Statement::expression>(
            {"gradient_clip_val", "the Trainer's", "the largest norm, or value"}),
        field<&Statement::algorithm>(
            {"gradient_clip_algorithm", "the Trainer's, or norm", "of all gradients, or of each"}),
        field<&Statement::optimizer, NameForm>({"optimizer", "the only one", "its name"})}},
      {Kind::lr_scheduler_step,
       "scheduler",
       {},
       "`scheduler.step()`",
       {field<&Statement::scheduler>(
            {"scheduler", "that of the hook, or the only one", "its number, from 0", 0, 1e6}),
        field<&Statement::expression>(
            {"metric", "that of the hook", "what a ReduceLROnPlateau judges"})}},
  };
}

// What changes how gradients are exchanged, or which parameters there are.
std::vector<StatementRow> exchange_rows() {
  return {
      {Kind::no_sync,
       "do",
       {"do"},
       "gradients stay on the rank",
       {field<&Statement::body, StatementsForm>({"do", "required", "the statements inside"})}},
      {Kind::set_requires_gradient_sync,
       "value",
       {"value"},
       "of a module of fully_shard, until it is set again",
       {field<&Statement::expression>({"value", "required", "false: gradients stay on the rank"})}},
      {Kind::summon_full_params,
       "do",
       {"do"},
       "`with FSDP.summon_full_params(model)`, a collective",
       {field<&Statement::body, StatementsForm>({"do", "required", "the statements inside"})}},
      {Kind::toggle_model,
       "",
       {"do"},
       "gradients of one optimizer's parameters only",
       {field<&Statement::optimizer, NameForm>({"optimizer", "the only one", "its name"}),
        field<&Statement::sync_grad>({"sync_grad", "true", "false: as in `no_sync`"}),
        field<&Statement::body, StatementsForm>({"do", "required", "the statements inside"})}},
  };
}

/// Lightning also takes a path, `best` and `hpc`.
struct CheckpointPathForm {
  static constexpr std::string_view type = "word";
  static std::vector<std::string_view> words() { return {"last"}; }
  static std::optional<std::string> read(Reader& reader, const Node& node, const KeyRow& row) {
    return read_word(reader, node, row, words()) ? std::optional<std::string>("last")
                                                 : std::nullopt;
  }
};

std::vector<StatementRow> step_rows() {
  return {
      {Kind::fit,
       "",
       {},
       "in `main`: `trainer.fit`",
       {field<&Statement::checkpoint, CheckpointPathForm>(
           {"ckpt_path", "none", "`last`: continue from the newest checkpoint `last`"})}},
      {Kind::validate, "", {}, "in `main`: `trainer.validate`", {}},
      {Kind::test, "", {}, "in `main`: `trainer.test`", {}},
      {Kind::predict, "", {}, "in `main`: `trainer.predict`", {}},
      {Kind::forward,
       "module",
       {},
       "binds `output` and `loss`",
       {field<&Statement::modules, NamesForm>(
            {"module", "the model", "which of `modules`, or several of them in order"}),
        field<&Statement::loss_target>(
            {"target", "those of the samples", "what the loss compares each output with"}),
        field<&Statement::skip>({"skip", "[]", "names of layers that do not run"}),
        field<&Statement::through>({"through", "strategy", "`module` = past the wrapper"}),
        field<&Statement::result, NameForm>({"as", "output", "the name of the output"})}},
  };
}

}  // namespace

std::vector<StatementRow> lightning_rows() {
  std::vector<StatementRow> rows = step_rows();
  const std::vector<StatementRow> optimization = optimization_rows();
  rows.insert(rows.end(), optimization.begin(), optimization.end());
  const std::vector<StatementRow> exchange = exchange_rows();
  rows.insert(rows.end(), exchange.begin(), exchange.end());
  const std::vector<StatementRow> logging = {
      {Kind::log,
       "",
       {"name", "value"},
       "`self.log`",
       log_fields({log_field<&LogSpec::name>({"name", "required", "the key"}),
                   log_field<&LogSpec::value>({"value", "required", "an expr or a metric"})})},
      {Kind::log_dict, "", {"dictionary"}, "`self.log_dict`", log_fields({dictionary_field()})},
      {Kind::update,
       "metric",
       {"metric"},
       "adds a batch to a metric",
       {metric_field(),
        field<&Statement::preds>({"preds", "score",
                                  "predictions; of MeanMetric and the like the "
                                  "value"}),
        field<&Statement::target>({"target", "target", "labels"}),
        field<&Statement::indexes>({"indexes", "indexes", "RetrievalMAP: the query of each"}),
        field<&Statement::weight>({"weight", "1", "MeanMetric: of each value"}),
        field<&Statement::result, NameForm>(
            {"as", "", "calls the metric (`forward`): name of the value of this batch"})}},
      {Kind::compute,
       "metric",
       {"metric"},
       "the metric over all ranks, a collective",
       {metric_field(), field<&Statement::result, NameForm>({"as", "", "name of the value"})}},
      {Kind::reset, "metric", {"metric"}, "empties a metric", {metric_field()}},
      {Kind::reduce_boolean_decision,
       "value",
       {"value"},
       "`strategy.reduce_boolean_decision`, a collective",
       {field<&Statement::expression>({"value", "required", "this rank's decision"}),
        field<&Statement::all>({"all", "true", "false: any rank is enough"}),
        field<&Statement::result, NameForm>({"as", "", "name of the common decision"})}},
      {Kind::save_checkpoint, "", {}, "`trainer.save_checkpoint`, a collective", {}},
      {Kind::state_dict, "", {}, "`self.state_dict()`: of the module and its metrics", {}},
      {Kind::should_stop,
       "value",
       {"value"},
       "`trainer.should_stop = ..` on this rank",
       {field<&Statement::expression>({"value", "required", "whether to stop"})}},
  };
  rows.insert(rows.end(), logging.begin(), logging.end());
  return rows;
}

}  // namespace lockstep
