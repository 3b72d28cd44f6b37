#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/core/units.hpp"

namespace lockstep {

/// The kinds of quantity that a scenario can write. Counts are ps, bytes, bytes/s, flops, flops/s.
enum class QuantityKind : uint8_t { time, bytes, rate, flops, flops_rate };
std::string_view name_of(QuantityKind kind);

/// A quantity whose kind is known at run time only; the static types are in model/core/units.hpp.
struct AnyQuantity {
  QuantityKind kind = QuantityKind::time;
  int64_t count = 0;
  bool operator==(const AnyQuantity&) const = default;
};

/// One spelling and what it counts. 128 bits, because a year has more picoseconds than an int64.
struct Unit {
  std::string_view name;
  QuantityKind kind = QuantityKind::time;
  Int128 factor = 1;
};

namespace unit {
inline constexpr Int128 k = 1000;
inline constexpr Int128 M = k * k;
inline constexpr Int128 G = M * k;
inline constexpr Int128 T = G * k;
inline constexpr Int128 P = T * k;
inline constexpr Int128 Ki = 1024;
inline constexpr Int128 day = 86'400 * T;
}  // namespace unit

/// Every legal unit, small to large within a kind. Rates in bits count bytes: eight bits each.
inline constexpr std::array<Unit, 39> units{{
    {"ps", QuantityKind::time, 1},
    {"ns", QuantityKind::time, unit::k},
    {"us", QuantityKind::time, unit::M},
    {"ms", QuantityKind::time, unit::G},
    {"s", QuantityKind::time, unit::T},
    {"min", QuantityKind::time, 60 * unit::T},
    {"h", QuantityKind::time, 3600 * unit::T},
    {"d", QuantityKind::time, unit::day},
    {"y", QuantityKind::time, 365 * unit::day},
    {"B", QuantityKind::bytes, 1},
    {"kB", QuantityKind::bytes, unit::k},
    {"KiB", QuantityKind::bytes, unit::Ki},
    {"MB", QuantityKind::bytes, unit::M},
    {"MiB", QuantityKind::bytes, unit::Ki* unit::Ki},
    {"GB", QuantityKind::bytes, unit::G},
    {"GiB", QuantityKind::bytes, unit::Ki* unit::Ki* unit::Ki},
    {"TB", QuantityKind::bytes, unit::T},
    {"TiB", QuantityKind::bytes, unit::Ki* unit::Ki* unit::Ki* unit::Ki},
    {"B/s", QuantityKind::rate, 1},
    {"kb/s", QuantityKind::rate, unit::k / 8},
    {"kB/s", QuantityKind::rate, unit::k},
    {"KiB/s", QuantityKind::rate, unit::Ki},
    {"Mb/s", QuantityKind::rate, unit::M / 8},
    {"MB/s", QuantityKind::rate, unit::M},
    {"MiB/s", QuantityKind::rate, unit::Ki* unit::Ki},
    {"Gb/s", QuantityKind::rate, unit::G / 8},
    {"GB/s", QuantityKind::rate, unit::G},
    {"GiB/s", QuantityKind::rate, unit::Ki* unit::Ki* unit::Ki},
    {"Tb/s", QuantityKind::rate, unit::T / 8},
    {"TB/s", QuantityKind::rate, unit::T},
    {"TiB/s", QuantityKind::rate, unit::Ki* unit::Ki* unit::Ki* unit::Ki},
    {"MFLOP", QuantityKind::flops, unit::M},
    {"GFLOP", QuantityKind::flops, unit::G},
    {"TFLOP", QuantityKind::flops, unit::T},
    {"PFLOP", QuantityKind::flops, unit::P},
    {"MFLOP/s", QuantityKind::flops_rate, unit::M},
    {"GFLOP/s", QuantityKind::flops_rate, unit::G},
    {"TFLOP/s", QuantityKind::flops_rate, unit::T},
    {"PFLOP/s", QuantityKind::flops_rate, unit::P},
}};

/// Null for a spelling that is none; spellings are case-sensitive (`Mb/s` is not `MB/s`).
const Unit* find_unit(std::string_view name);

/// Exact, in the unit that needs the smallest number: "10 ms", "64 MiB", "0 B". A count of flops
/// below the smallest unit is written with a fraction.
std::string text_of(AnyQuantity quantity);

}  // namespace lockstep
