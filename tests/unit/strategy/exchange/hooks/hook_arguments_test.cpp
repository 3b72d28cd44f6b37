// What the arguments of hooks mean, and which of them are refused.
#include "model/strategy/exchange/hooks/hook_arguments.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace hook_arguments_test {
using Catch::Matchers::Contains;

namespace {

using Given = std::vector<std::pair<std::string, StrategyArguments::Value>>;

StrategyArguments arguments_of(const Given& given) {
  StrategyArguments arguments;
  for (const auto& [name, value] : given) {
    arguments.set(name, value);
  }
  return arguments;
}

HookOptions options_of(const Given& given) { return hook_options_from(arguments_of(given)); }

std::string text(const char* value) { return value; }

}  // namespace

TEST_CASE("PowerSGD compresses a matrix where that saves enough") {
  PowerSgdOptions options;
  CHECK(compressed_rank(options, 1024, 1024) == 1);  // (1024 + 1024) x 1 = 2048 of 1048576
  CHECK(compressed_rank(options, 1000, 1) == 0);
  options.rank = 4;
  CHECK(compressed_rank(options, 64, 9) == 0);  // (64 + 9) x 4 x 2 = 584 >= 576
  options.rank = 3;
  CHECK(compressed_rank(options, 64, 9) == 3);  // 438
  options.rank = 8;
  options.min_compression_rate = 0.1;
  CHECK(compressed_rank(options, 4, 3) == 3);  // no more than the shorter side
}

TEST_CASE("hooks are known by the last part of their name") {
  CHECK(options_of({}).kind == HookOptions::Kind::none);
  const HookOptions cast = options_of({{"ddp_comm_hook", text("default.bf16_compress_hook")}});
  CHECK(cast.kind == HookOptions::Kind::cast);
  CHECK(cast.narrow == DType::bf16);
  const HookOptions wrapped = options_of(
      {{"ddp_comm_hook", text("noop_hook")}, {"ddp_comm_wrapper", text("fp16_compress_wrapper")}});
  CHECK(wrapped.kind == HookOptions::Kind::noop);
  CHECK(wrapped.wrapper == DType::fp16);
}

TEST_CASE("a state is known by its arguments or by its class") {
  const Given with_arguments = {{"ddp_comm_hook", text("powerSGD_hook")},
                                {"ddp_comm_state.start_powerSGD_iter", int64_t{2}},
                                {"ddp_comm_state.matrix_approximation_rank", int64_t{3}}};
  CHECK(options_of(with_arguments).power_sgd.rank == 3);
  CHECK(options_of(with_arguments).has_state);
  const HookOptions in_class =
      options_of({{"ddp_comm_hook", text("powerSGD_hook")},
                  {"ddp_comm_state.PowerSGDState.start_powerSGD_iter", int64_t{5}}});
  CHECK(in_class.power_sgd.start_iteration == 5);
  // As a script and as a LightningCLI file name it.
  const HookOptions in_module =
      options_of({{"ddp_comm_hook", text("powerSGD_hook")},
                  {"ddp_comm_state.powerSGD.PowerSGDState.start_powerSGD_iter", int64_t{6}}});
  CHECK(in_module.power_sgd.start_iteration == 6);
  const std::string path = "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.";
  const HookOptions by_path =
      options_of({{"ddp_comm_hook", text("powerSGD_hook")},
                  {"ddp_comm_state.class_path", path + "PowerSGDState"},
                  {"ddp_comm_state.init_args.start_powerSGD_iter", int64_t{7}}});
  CHECK(by_path.power_sgd.start_iteration == 7);
  CHECK(by_path.has_state);
  const HookOptions by_default = options_of(
      {{"ddp_comm_hook", text("powerSGD_hook")}, {"ddp_comm_state", text("PowerSGDState")}});
  CHECK(by_default.has_state);
  CHECK(by_default.power_sgd.start_iteration == 1000);
  CHECK_FALSE(options_of({{"ddp_comm_hook", text("powerSGD_hook")}}).has_state);
}

TEST_CASE("wrong arguments of hooks are named with what helps") {
  CHECK_THROWS_WITH(options_of({{"ddp_comm_hook", text("fp16_compres_hook")}}),
                    Contains("no communication hook `fp16_compres_hook`"));
  try {
    options_of({{"ddp_comm_hook", text("fp16_compres_hook")}});
  } catch (const ArgumentProblem& problem) {
    CHECK(problem.remedy().starts_with(
        "did you mean `fp16_compress_hook`? The hooks are allreduce_hook, fp16_compress_hook, "));
  }
  // A name that shares its first word with a hook, and one that shares nothing.
  for (const auto& [name, remedy] :
       {std::pair("fp16_hook", "did you mean `fp16_compress_hook`? The hooks are allreduce_hook, "),
        std::pair("top_k", "the hooks are allreduce_hook, ")}) {
    try {
      options_of({{"ddp_comm_hook", text(name)}});
      FAIL("it is no hook");
    } catch (const ArgumentProblem& problem) {
      CHECK(problem.remedy().starts_with(remedy));
    }
  }
  CHECK_THROWS_AS(options_of({{"ddp_comm_hook", text("quantization_pertensor_hook")}}),
                  UnmodelledArgument);
  CHECK_THROWS_WITH(options_of({{"ddp_comm_hook", text("powerSGD_hook")},
                                {"model_averaging_period", int64_t{2}},
                                {"ddp_comm_state.start_localSGD_iter", int64_t{2}}}),
                    Contains("is a PostLocalSGDState, and powerSGD_hook takes a PowerSGDState"));
  CHECK_THROWS_WITH(options_of({{"ddp_comm_hook", text("fp16_compress_hook")},
                                {"ddp_comm_state.start_powerSGD_iter", int64_t{2}}}),
                    Contains("fp16_compress_hook takes no such state"));
  CHECK_THROWS_WITH(options_of({{"ddp_comm_state.start_powerSGD_iter", int64_t{2}},
                                {"ddp_comm_state.start_localSGD_iter", int64_t{2}}}),
                    Contains("is an argument of PowerSGDState"));
  CHECK_THROWS_WITH(options_of({{"ddp_comm_state.start_powersgd", int64_t{2}}}),
                    Contains("has an argument `start_powersgd`"));
  CHECK_THROWS_WITH(options_of({{"ddp_comm_wrapper", text("fp8_compress_wrapper")}}),
                    Contains("no wrapper of hooks"));
  CHECK_THROWS_AS(options_of({{"ddp_comm_hook", text("powerSGD_hook")},
                              {"ddp_comm_state.process_group", text("group")},
                              {"ddp_comm_state.start_powerSGD_iter", int64_t{2}}}),
                  UnmodelledArgument);
}

TEST_CASE("what torch and Lightning refuse at set-up is refused") {
  CHECK_THROWS_AS(options_of({{"ddp_comm_hook", text("powerSGD_hook")},
                              {"ddp_comm_state.start_powerSGD_iter", int64_t{1}}}),
                  RefusedArgument);
  const Given cold = {{"ddp_comm_hook", text("powerSGD_hook")},
                      {"ddp_comm_state.start_powerSGD_iter", int64_t{0}},
                      {"ddp_comm_state.use_error_feedback", false},
                      {"ddp_comm_state.warm_start", false}};
  CHECK(options_of(cold).power_sgd.start_iteration == 0);
  const auto local = [](int64_t start, StrategyArguments::Value period) {
    return Given{{"ddp_comm_hook", text("post_localSGD_hook")},
                 {"ddp_comm_state.start_localSGD_iter", start},
                 {"model_averaging_period", period}};
  };
  CHECK(options_of(local(2, int64_t{4})).averaging.period == 4);
  CHECK_THROWS_AS(options_of(local(2, int64_t{0})), RefusedArgument);
  CHECK_THROWS_AS(options_of(local(-1, int64_t{2})), RefusedArgument);
  CHECK_THROWS_AS(options_of(local(2, std::monostate())), RefusedArgument);
  CHECK_THROWS_AS(options_of({{"ddp_comm_hook", text("post_localSGD_hook")},
                              {"ddp_comm_state", text("PostLocalSGDState")},
                              {"model_averaging_period", int64_t{2}}}),
                  RefusedArgument);
}

TEST_CASE("arguments of hooks that change nothing are reported") {
  const auto told = [](const Given& given, bool on_gpu) {
    std::vector<std::string> names;
    for (const auto& [name, why] : hooks_without_effect(arguments_of(given), on_gpu)) {
      names.push_back(name);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(told({{"ddp_comm_hook", text("noop_hook")}}, true) == Names());
  CHECK(told({{"ddp_comm_hook", text("noop_hook")}}, false) == Names{"ddp_comm_hook"});
  CHECK(told({{"ddp_comm_wrapper", text("fp16_compress_wrapper")}}, true) ==
        Names{"ddp_comm_wrapper"});
  CHECK(told({{"model_averaging_period", int64_t{4}}}, true) == Names{"model_averaging_period"});
  CHECK(told({{"ddp_comm_state.start_powerSGD_iter", int64_t{5}}}, true) ==
        Names{"ddp_comm_state"});
  // Lightning averages models by this state, whichever hook there is.
  CHECK(told({{"ddp_comm_state.start_localSGD_iter", int64_t{5}},
              {"model_averaging_period", int64_t{4}}},
             true) == Names());
}

}  // namespace hook_arguments_test
