#include "sim/cost/kernel_sum.hpp"

#include <algorithm>

namespace lockstep::sim {

namespace {

KernelTerm term_of(KernelTerm first, SoftwareProfile software) {
  return static_cast<KernelTerm>(static_cast<int>(first) + static_cast<int>(software));
}

double microseconds(double count) { return count * 1e-6; }

double tensor_fraction(const KernelMachine& machine) {
  const int capability = machine.device.compute_capability;
  const KernelConstants& constants = machine.constants;
  constexpr int of_geforce_blackwell = 120;  // multiprocessors as those of Ampere's and Ada's cards
  if (capability >= 90 && capability < of_geforce_blackwell) {
    return constants[KernelTerm::tensor_hopper];
  }
  if (capability > 80) {
    return constants[KernelTerm::tensor_ga102];
  }
  if (capability == 80) {
    return constants[KernelTerm::tensor_ampere];
  }
  return constants[capability > 70 ? KernelTerm::tensor_turing : KernelTerm::tensor_volta];
}

}  // namespace

bool is_half(DType dtype) { return dtype == DType::fp16 || dtype == DType::bf16; }

double product_rate(const KernelMachine& machine, DType dtype, bool on_tf32) {
  const DeviceModel& device = machine.device;
  if (is_half(dtype)) {
    return static_cast<double>(device.speed(dtype).peak.count()) * tensor_fraction(machine);
  }
  if (on_tf32 && device.tf32) {
    return static_cast<double>(device.tf32->peak.count()) * tensor_fraction(machine) *
           machine.constants[KernelTerm::tf32];
  }
  return static_cast<double>(device.speed(dtype).peak.count()) *
         machine.constants[KernelTerm::vector];
}

double memory_rate(const KernelMachine& machine) {
  return static_cast<double>(machine.device.memory_bandwidth.count()) *
         machine.constants[KernelTerm::memory];
}

KernelSum::KernelSum(const KernelMachine& machine)
    : machine_(machine),
      host_(
          microseconds(machine.constants[term_of(KernelTerm::host_pytorch_us, machine.software)])) {
}

void KernelSum::add(double device_seconds) {
  seconds_ +=
      std::max(device_seconds + microseconds(machine_.constants[KernelTerm::gap_us]), host_);
}

void KernelSum::add_of_library(double device_seconds) {
  seconds_ += device_seconds + microseconds(machine_.constants[KernelTerm::gap_us]);
}

void KernelSum::stream(double bytes) { add(bytes / memory_rate(machine_)); }

void KernelSum::element_wise(double bytes) {
  stream(bytes * machine_.constants[term_of(KernelTerm::passes_pytorch, machine_.software)]);
}

void add_product(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass,
                 const MatrixProduct& forward, double part) {
  const bool tf32 = machine.tf32_products;
  const auto seconds = [&](const MatrixProduct& product) {
    return seconds_of_product(machine, product, pass.dtype, tf32, part);
  };
  if (!pass.is_backward) {
    sum.add(seconds(forward));
    return;
  }
  const auto [rows, columns, inner, count] = forward;
  if (pass.layer->work_of(Pass::input_gradient).runs) {
    sum.add(seconds({rows, inner, columns, count}));
  }
  if (pass.layer->work_of(Pass::weight_gradient).runs) {
    sum.add(seconds({inner, columns, rows, count}));
  }
}

int64_t rows_of(const LayerPass& pass) {
  return pass.samples * elements_of(pass.layer->input) / pass.layer->input.back();
}

}  // namespace lockstep::sim
