#include "runtime/plans.h"

#include <algorithm>

#include "runtime/context.h"

namespace selkie::runtime {
namespace {

uint64_t hash_of(std::span<const int64_t> key) {
  uint64_t hash = key.size();
  for (int64_t size : key) hash = (hash ^ static_cast<uint64_t>(size)) * 0x9e3779b97f4a7c15 + (hash >> 29);
  return hash;
}

}  // namespace

bool Plans::find(std::span<const int64_t> key) {
  if (kept_.empty()) return false;
  if (std::ranges::equal(latest().key, key)) return true;
  uint64_t hash = hash_of(key);
  auto at = std::ranges::find_if(
      kept_, [&](const Kept& kept) { return kept.hash == hash && std::ranges::equal(kept.plan->key, key); });
  if (at == kept_.end()) return false;
  std::rotate(kept_.begin(), at, at + 1);
  return true;
}

void Plans::add(Plan plan) {
  if (count() == most_kept_plans) kept_.pop_back();
  uint64_t hash = hash_of(plan.key);
  kept_.insert(kept_.begin(), {.hash = hash, .plan = std::make_unique<Plan>(std::move(plan))});
}

}  // namespace selkie::runtime
