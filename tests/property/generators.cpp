#include "tests/property/generators.hpp"

namespace lockstep::test {

namespace {

// So many that three in ten cases carry a defect after all, as not every program can carry each.
constexpr int defect_of_ten = 6;

// Evenly, however far the test has come: rapidcheck's ranges grow with the number of the case.
int32_t draw(int32_t below) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int32_t>(0, below));
}
bool draw_bool() { return draw(2) == 1; }

// One to four, a single rank seldom.
int32_t draw_ranks() {
  return *rc::gen::weightedElement<int32_t>({{1, 1}, {7, 2}, {5, 3}, {4, 4}});
}

Step draw_bare_step() {
  Step step;
  // Half of the steps are collectives.
  step.act = static_cast<Act>(draw_bool() ? draw(collective_count)
                                          : draw(act_count - collective_count) + collective_count);
  step.buffer = draw(3);
  step.other = draw(2);
  step.group = draw(4);
  step.number = draw(4);
  step.reduction =
      *rc::gen::element(Reduction::sum, Reduction::avg, Reduction::min, Reduction::max);
  return step;
}

Defect draw_defect() {
  Defect defect;
  if (draw(10) < defect_of_ten) {
    defect.flaw = static_cast<Flaw>(1 + draw(flaw_count - 1));
    defect.rank = draw(4);
    defect.at = draw(12);
  }
  return defect;
}

}  // namespace

rc::Gen<BareProgram> bare_programs() {
  const auto steps = rc::gen::resize(
      16, rc::gen::nonEmpty(rc::gen::container<std::vector<Step>>(rc::gen::exec(draw_bare_step))));
  return rc::gen::exec([steps] {
    BareProgram program;
    program.ranks = draw_ranks();
    program.dtype = *rc::gen::element(DType::fp32, DType::fp64, DType::bf16, DType::int64);
    program.eager = draw(4) == 0;
    program.steps = *steps;
    program.defect = draw_defect();
    return program;
  });
}

rc::Gen<TrainingCase> training_cases() {
  return rc::gen::exec([] {
    TrainingCase training;
    training.strategy = *rc::gen::weightedElement<Trained>(
        {{8, Trained::ddp}, {1, Trained::dp}, {1, Trained::single}});
    training.ranks = draw_ranks();
    training.devices = training.strategy == Trained::dp ? 1 + draw(3) : 1;
    training.hidden = 1 << (1 + draw(3));
    training.batch_norm = draw(3) == 0;
    training.adam = draw(4) == 0;
    training.batch = 1 << (1 + draw(2));
    training.steps = 1 + draw(3);
    training.accumulate = 1 + draw(2);
    DataParallelOptions& ddp = training.options;
    if (draw_bool()) {
      ddp.bucket_cap = Bytes(16 << draw(5));
    }
    ddp.find_unused_parameters = draw(3) == 0;
    // A static graph must synchronise its first iteration, so it cannot accumulate from the start.
    ddp.static_graph = !ddp.find_unused_parameters && training.accumulate == 1 && draw(4) == 0;
    ddp.gradient_as_bucket_view = draw(3) == 0;
    ddp.broadcast_buffers = draw(4) != 0;
    ddp.join = draw(3) == 0;
    ddp.divide_by_initial_world_size = draw(4) != 0;
    if (draw(10) < defect_of_ten + 2) {
      training.flaw = static_cast<TrainingFlaw>(1 + draw(4));
    }
    training.checkpoint = static_cast<Checkpointed>(draw(4));
    return training;
  });
}

}  // namespace lockstep::test
