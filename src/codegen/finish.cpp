// Reads the one stored expression of an epilogue from the outside in.
#include "codegen/finish.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace selkie::codegen {
namespace {

using kir::ExprId;
using kir::Op;

// max(x, number) or min(x, number).
struct Bound {
  bool is_least;
  float number;
  ExprId x;
};

class Reader {
 public:
  explicit Reader(const kir::Kernel& kernel) : kernel_(kernel) {}

  std::optional<Finish> read() const {
    const kir::Statement* store = only_store();
    if (!store || kernel_.buffers[store->slot].dtype != DType::f32) return std::nullopt;
    ExprId value = store->value;
    std::vector<Bound> bounds;
    for (std::optional<Bound> found; (found = bound(value)); value = found->x) bounds.push_back(*found);
    constexpr float infinity = std::numeric_limits<float>::infinity();
    Finish finish{.addend = {}, .low = -infinity, .high = infinity};
    if (!reads_sum(value, *store, finish)) return std::nullopt;
    std::for_each(bounds.rbegin(), bounds.rend(), [&](const Bound& b) {
      auto apply = [&](float x) { return b.is_least ? std::max(x, b.number) : std::min(x, b.number); };
      finish.low = apply(finish.low);
      finish.high = apply(finish.high);
    });
    return finish;
  }

 private:
  const kir::Statement* only_store() const {
    const kir::Block* block = &kernel_.body;
    while (block->size() == 1 && block->front().kind == kir::Statement::Kind::loop) block = &block->front().body;
    return block->size() == 1 && block->front().kind == kir::Statement::Kind::store ? &block->front() : nullptr;
  }

  std::optional<float> number(ExprId id) const {
    const kir::Expr& e = kernel_[id];
    if (e.op != Op::constant || e.dtype != DType::f32) return std::nullopt;
    auto value = static_cast<float>(std::bit_cast<double>(e.bits));
    return value == value ? std::optional(value) : std::nullopt;
  }

  std::optional<Bound> bound(ExprId id) const {
    const kir::Expr& e = kernel_[id];
    if (e.op == Op::max || e.op == Op::min) {
      for (size_t i : {size_t{0}, size_t{1}})
        if (auto found = number(e.operands[i]))
          return Bound{.is_least = e.op == Op::max, .number = *found, .x = e.operands[1 - i]};
    }
    if (e.op != Op::select) return std::nullopt;
    // select(x < number, number, x), or with the number on the left.
    const kir::Expr& condition = kernel_[e.operands[0]];
    auto found = number(e.operands[1]);
    ExprId x = e.operands[2];
    if (condition.op != Op::less || !found) return std::nullopt;
    bool is_least = condition.operands[0] == x && condition.operands[1] == e.operands[1];
    bool is_most = condition.operands[1] == x && condition.operands[0] == e.operands[1];
    if (!is_least && !is_most) return std::nullopt;
    return Bound{.is_least = is_least, .number = *found, .x = x};
  }

  // The buffer whose element in the place that is stored to is read.
  std::optional<uint32_t> load_in_place(ExprId id, const kir::Statement& store) const {
    const kir::Expr& e = kernel_[id];
    bool fits = e.op == Op::load && e.dtype == DType::f32 && e.operands[0] == store.index;
    return fits ? std::optional(e.slot) : std::nullopt;
  }

  bool reads_sum(ExprId id, const kir::Statement& store, Finish& finish) const {
    const kir::Expr& e = kernel_[id];
    if (e.op != Op::add) return load_in_place(id, store) == store.slot;
    auto left = load_in_place(e.operands[0], store);
    auto right = load_in_place(e.operands[1], store);
    if (!left || !right || (*left == store.slot) == (*right == store.slot)) return false;
    finish.addend = *left == store.slot ? *right : *left;
    return true;
  }

  const kir::Kernel& kernel_;
};

}  // namespace

std::optional<Finish> find_finish(const kir::Kernel& kernel) { return Reader(kernel).read(); }

}  // namespace selkie::codegen
