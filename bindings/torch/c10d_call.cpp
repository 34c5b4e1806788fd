#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "c10d_backend.h"

namespace espalier {

Call::Call(Backend *backend, c10d::OpType kind, int rank)
	: c10d::Work(rank, kind), backend_(backend), door_(backend->door_), starting_(door_->lock) {}

Call::~Call()
{
	Inside inside = starting_ ? std::move(starting_) : Inside(door_->lock);

	for (esp_work *work : works_) {
		if (door_->open) /* otherwise leaving the job has freed them */
			esp_work_free(work);
	}
}

bool Call::has_ended() const
{
	for (esp_work *work : works_) {
		if (esp_test(work) == ESP_PENDING)
			return false;
	}
	return true;
}

/* How its works have ended. Not while callbacks are made, one of which may close the backend. */
std::exception_ptr Call::ask()
{
	Inside inside(door_->lock);

	if (!door_->open)
		return std::make_exception_ptr(std::runtime_error("espalier: the process group was closed before the call had ended"));
	for (esp_work *work : works_) {
		if (esp_test(work) == ESP_OK)
			continue;
		esp_error error = ESP_ERROR_INIT;
		esp_work_error(work, &error);
		return std::make_exception_ptr(std::runtime_error(std::string("espalier: ") + error.text));
	}
	if (!failure_ && opType_ == c10d::OpType::RECVANYSOURCE) {
		uint32_t from = 0;
		esp_work_received(works_[0], nullptr, &from);
		source_ = static_cast<int>(from);
	}
	return failure_;
}

/* Called by all who find that the library has done its part; the first does the rest. */
void Call::complete()
{
	if (claimed_.exchange(true)) {
		std::unique_lock<std::mutex> guard(mutex_);
		cv_.wait(guard, [this] { return completed_; });
		return;
	}
	std::exception_ptr failure = ask();
	try {
		if (!failure && device_)
			restore();
		else if (!failure && finish_)
			finish_();
	} catch (...) {
		failure = std::current_exception();
	}
	end(failure);
}

/* Results of an accelerator's tensors go back on a stream of their own, behind all that its caller had queued. */
void Call::restore()
{
	c10::impl::VirtualGuardImpl guard(device_->type());
	c10::Stream back = guard.getStreamFromGlobalPool(*device_);
	c10::StreamGuard on(back);

	if (called_)
		called_->block(back);
	if (finish_)
		finish_();
	/* Their memory may be given away before this stream has written it, unless the allocator knows of the stream. */
	for (at::Tensor &tensor : outputs_) {
		if (!tensor.device().is_cpu())
			tensor.record_stream(back);
	}
	restored_ = std::make_unique<c10::Event>(device_->type());
	restored_->record(back);
	back_ = back;
}

/*
 * The call has ended. First the work, then the future, whose callbacks may wait for the work. Letting go of a tensor may need
 * Python's lock, and others have that while they want ours: nothing is let go of under it.
 */
void Call::end(std::exception_ptr failure)
{
	Tensors held;
	std::function<void()> finish, record;

	{
		std::unique_lock<std::mutex> guard(mutex_);
		completed_ = true;
		exception_ = failure;
		held.swap(held_);
		finish.swap(finish_);
		record.swap(recordFunctionEndCallback_);
	}
	cv_.notify_all();
	if (record)
		record();
	if (!future_ || future_->completed())
		return;
	if (failure) {
		future_->setError(failure);
	} else if (back_) {
		c10::StreamGuard on(*back_); /* consumers' streams wait for this one */
		future_->markCompleted(c10::IValue(outputs_));
	} else {
		future_->markCompleted(c10::IValue(outputs_));
	}
}

/*
 * Who waits for a call completes it, so that neither a thread of the library nor the backend's own has to be woken for it: with eight
 * ranks on two cores that would take longer than a small call. Returns how many callbacks will not come.
 */
unsigned Call::forgo_callbacks()
{
	unsigned forgone = 0;

	if (staged_ || is_awaited_.exchange(true))
		return 0;
	for (esp_work *work : works_)
		forgone += esp_work_no_callback(work) == ESP_OK;
	return forgone;
}

/* It has been completed by who had forgone its callbacks. If some come all the same, the last of them goes on. */
void Call::let_go(unsigned forgone)
{
	Inside inside(door_->lock);

	if (door_->open && unfinished_.fetch_sub(forgone) == forgone)
		backend_->forget(this);
}

/* Who had forgone them does not wait any longer. */
void Call::hand_over()
{
	Inside inside(door_->lock);

	if (door_->open)
		backend_->ask_about(this);
}

bool Call::wait(std::chrono::milliseconds timeout)
{
	unsigned forgone = 0;
	auto ends = std::chrono::steady_clock::now() + timeout;
	bool limited = timeout.count() > 0;

	while (!isCompleted()) {
		auto left = std::chrono::nanoseconds(ends - std::chrono::steady_clock::now());

		if (limited && left.count() <= 0 && forgone > 0)
			hand_over();
		TORCH_CHECK(!limited || left.count() > 0, "espalier: not finished within ", timeout.count(), " ms; it goes on");
		if (chained_) {
			std::unique_lock<std::mutex> guard(mutex_);
			auto is_over = [this] { return completed_; };

			if (limited)
				cv_.wait_for(guard, left, is_over);
			else
				cv_.wait(guard, is_over);
			continue;
		}
		bool ended = false;
		{
			Inside inside(door_->lock);

			TORCH_CHECK(door_->open, "espalier: the process group has been closed, and its calls with it");
			forgone += forgo_callbacks();
			/* What the library has to do is done in this thread. */
			for (esp_work *work : works_)
				(void)esp_wait(work, limited ? left.count() : -1);
			ended = has_ended();
		}
		if (ended)
			complete();
	}
	if (forgone > 0)
		let_go(forgone);
	{
		std::unique_lock<std::mutex> guard(mutex_);
		if (exception_)
			std::rethrow_exception(exception_);
	}
	synchronize();
	return true;
}

void Call::synchronize()
{
	if (!restored_)
		return;
	c10::impl::VirtualGuardImpl guard(device_->type());
	restored_->block(guard.getStream(*device_));
}

bool Call::isCompleted()
{
	std::unique_lock<std::mutex> guard(mutex_);
	return completed_;
}

bool Call::isSuccess() const
{
	std::unique_lock<std::mutex> guard(mutex_);
	return completed_ && !exception_;
}

std::exception_ptr Call::exception() const
{
	std::unique_lock<std::mutex> guard(mutex_);
	return exception_;
}

int Call::sourceRank() const
{
	return source_;
}

Tensors Call::result()
{
	return outputs_;
}

void Call::abort()
{
	Inside inside(door_->lock);

	if (door_->open)
		backend_->stop("aborted");
}

c10::intrusive_ptr<c10::ivalue::Future> Call::getFuture()
{
	if (!has_callbacks_.exchange(true)) {
		Inside inside(door_->lock);

		if (door_->open)
			backend_->expect_callbacks();
	}
	return future_;
}

void Call::open_gate()
{
	__atomic_store_n(&gate_, 1, __ATOMIC_RELEASE);
}

} // namespace espalier
